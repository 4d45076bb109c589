"""What the terminal says about judging on a site."""

from __future__ import annotations

from typing import Any

TEXTS = {
    "no_address": {
        "zh": "{url} 不能用作站点地址：--remote 要的是协议加主机名，例如 https://course.example.edu，后面不带路径和令牌",
        "en": "{url} cannot be used: --remote takes scheme and host, such as https://course.example.edu, without path or token",
    },
    "insecure": {
        "zh": "http 会在网络上明文传送令牌。请用 https://{host}；如果网络本身可信（例如 VPN），加上 --insecure",
        "en": "http would send your token over the network for all to read. Use https://{host}; if you trust the network "
        "(a VPN, say), add --insecure",
    },
    "no_token": {
        "zh": "没有令牌。把它放进文件，用 --token-file FILE 指明，或放进环境变量 COURSE_API_TOKEN。"
        "有账号的站点在“我的账号”的“令牌”页面生成；没有账号的站点用启动地址里 token= 后面的那段",
        "en": "there is no token. Put it into a file and name it with --token-file FILE, or into the variable COURSE_API_TOKEN. "
        "A site with accounts makes one on the page “Tokens” of your account; without accounts it is what follows token= in "
        "the start address",
    },
    "bad_token": {
        "zh": "{where} 里的内容不像令牌：应该只有一行，由字母、数字和符号组成",
        "en": "what is in {where} is no token: it must be one line of letters, digits and signs",
    },
    "no_token_file": {"zh": "读不了 {file}：{reason}", "en": "{file} cannot be read: {reason}"},
    "open_file": {
        "zh": "提醒：本机其他用户也能读 {file}；运行 chmod 600 {file} 收回权限",
        "en": "Note: others on this machine can read {file}; chmod 600 {file} ends that",
    },
    "no_answer": {
        "zh": "{url} 没有应答（{reason}）。请检查地址和网络，以及站点是否在运行",
        "en": "{url} gives no answer ({reason}). Check the address, the network, and whether the site runs",
    },
    "unsure": {
        "zh": "不确定这份提交是否已收下：重新提交之前，先看 {url}/submissions",
        "en": "It is not known whether the submission was taken: look at {url}/submissions before you send it again",
    },
    "no_api": {
        "zh": "{url} 的应答不是本课程的 API。请检查地址，用在浏览器里打开站点时的那个",
        "en": "what answers at {url} is not this course's API. Check the address: it is the one that opens the site in a browser",
    },
    "strange": {
        "zh": "{url} 返回了 {code}，但不是本课程 API 的格式。请检查地址；如果中间有代理，可能是它返回的",
        "en": "{url} answers {code}, but not as this course's API does. Check the address; it may be a proxy in between",
    },
    "moved": {
        "zh": "{url} 转到了 {to}。令牌不会跟着转过去；请把新地址用在 --remote 里",
        "en": "{url} leads on to {to}. The token is not sent there by itself: use that address with --remote",
    },
    "token": {"zh": "站点不接受这个令牌。", "en": "The site does not take this token."},
    "wait": {"zh": "（{seconds} 秒后可以再试）", "en": "(Try again in {seconds} s.)"},
    "other_version": {
        "zh": "提醒：站点上题目 {id} 的版本是 {remote}，这里是 {local}；题面或用例可能不同",
        "en": "Note: the site has version {remote} of problem {id}, here it is {local}; statement or cases may differ",
    },
    "not_there": {
        "zh": "站点上没有题目 {id}",
        "en": "the site has no problem {id}",
    },
    "sent": {
        "zh": "提交 {number}：{url}/submissions/{number}",
        "en": "Submission {number}: {url}/submissions/{number}",
    },
    "queued": {"zh": "排队，前面还有 {ahead} 份", "en": "queued, {ahead} before it"},
    "running": {"zh": "评测中，已判 {done}/{total}", "en": "running, {done} of {total} judged"},
    "no_wait": {
        "zh": "等了 {seconds} 秒还没有结论。提交没有取消，结论会出现在 {url}/submissions/{number}",
        "en": "no verdict within {seconds} s. The submission goes on: its verdict will be at {url}/submissions/{number}",
    },
    "ask_cancel": {
        "zh": "取消提交 {number} 吗？（否：让它继续评测）",
        "en": "Cancel submission {number}? (No: it goes on)",
    },
    "cancelled": {"zh": "提交 {number} 已取消", "en": "Submission {number} is cancelled"},
    "left": {
        "zh": "提交 {number} 没有取消，结论会出现在 {url}/submissions/{number}",
        "en": "Submission {number} goes on: its verdict will be at {url}/submissions/{number}",
    },
    "ended": {
        "zh": "提交 {number} 没有取消：{reason}",
        "en": "Submission {number} is not cancelled: {reason}",
    },
    "unknown_verdict": {
        "zh": "站点的结论不是这里认识的格式（站点的版本可能更新）。用 --json 可以看原文，或打开 {url}/submissions/{number}",
        "en": "the site's verdict is not in a form that is known here (the site may be newer). --json shows it as it is; or open "
        "{url}/submissions/{number}",
    },
    "not_remote": {
        "zh": "{option} 不能和 --remote 一起用",
        "en": "{option} cannot be used together with --remote",
    },
    "only_remote": {"zh": "{option} 要和 --remote 一起用", "en": "{option} needs --remote"},
}


def text(key: str, lang: str, **params: Any) -> str:
    return TEXTS[key][lang].format(**params)

"""A page walked with Tab alone: all that can be used is reached, in the order of the page, is seen to have the focus, and
lets go of it again."""

from __future__ import annotations

from typing import Any

from browser_steps import settle

MOST_TABS = 1500
AT_ONCE = 25

# Numbers what Tab is to reach, then writes down what gets the focus, and whether that is seen.
WATCH = """() => {
  document.body.tabIndex = -1;  // from the top, also where a field had the focus at once
  document.body.focus();
  document.body.removeAttribute("tabindex");
  const usable = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex], [contenteditable=true]";
  const looks = e => { const s = getComputedStyle(e); return s.outlineStyle + s.outlineWidth + s.outlineColor + s.boxShadow; };
  const around = e => [e, e.parentElement, e.closest(".editor"), e.nextElementSibling].filter(Boolean);
  const follows = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;
  const named = e => e.outerHTML.replace(/\\s+/g, " ").slice(0, 110);
  const wanted = [...document.querySelectorAll(usable)].filter(e => {
    if (e.tabIndex < 0 || e.disabled || !e.checkVisibility()) return false;
    if (e.type !== "radio") return true;
    const group = [...document.querySelectorAll("input[type=radio]")].filter(r => r.name === e.name && r.form === e.form);
    return e === (group.find(r => r.checked) ?? group[0]);
  });
  const before = new Map(wanted.map(e => [e, around(e).map(looks).join()]));
  const seen = [], unseen = [], covered = [];
  window.walk = { rounds: 0, report: () => ({
    first: seen.length ? seen[0].className : "",
    missed: wanted.filter(e => !seen.includes(e)).map(named),
    disordered: seen.filter((e, i) => i && !follows(seen[i - 1], e)).map(named),
    ahead: wanted.filter(e => e.tabIndex > 0).map(named),
    unseen, covered,
  }) };
  document.addEventListener("focusin", event => {
    const e = event.target;
    if (e === document.body) return;
    if (e === seen[0]) walk.rounds = 1;
    if (walk.rounds || e === seen.at(-1)) return;
    seen.push(e);
    if (before.has(e) && before.get(e) === around(e).map(looks).join()) unseen.push(named(e));
    const box = e.getBoundingClientRect(), bar = document.querySelector(".bar");
    const under = getComputedStyle(bar).position === "sticky" && !bar.contains(e) ? bar.getBoundingClientRect().bottom : 0;
    if (!e.classList.contains("skip") && (box.bottom <= under || box.top >= innerHeight)) covered.push(named(e));
  });
}"""


def faults_of(page: Any, address: str) -> list[str]:
    """What is wrong with a page for who has a keyboard only."""
    page.goto(address)
    settle(page)
    has_editor = page.locator("[data-editor]").count() > 0
    page.evaluate(WATCH)
    for _ in range(0, MOST_TABS, AT_ONCE):
        for _ in range(AT_ONCE):
            page.keyboard.press("Tab")
            if has_editor and page.evaluate("() => document.activeElement.className").startswith(
                "cm-content"
            ):
                page.keyboard.press("Escape")
                has_editor = False
        if page.evaluate("() => walk.rounds"):
            break
    else:
        return [f"{address}: after {MOST_TABS} times Tab the page has not let go"]
    found = page.evaluate("() => walk.report()")
    first = found.pop("first")
    wrong = [f"{address}: {kind}: {html}" for kind, all_of in found.items() for html in all_of]
    return wrong if first == "skip" else [*wrong, f"{address}: begins with {first!r}, not with the skip link"]

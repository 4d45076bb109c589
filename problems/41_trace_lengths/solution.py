def trace(prompt_len, cached_len, output_len):
    cached, device = cached_len, prompt_len
    end = prompt_len + output_len
    rows = []
    for step in range(output_len):
        phase = "prefill" if step == 0 else "decode"
        rows.append((phase, cached, device, device - cached, end - device))
        cached = device
        device += 1
    return rows

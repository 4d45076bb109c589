def trace(prompt_len, cached_len, output_len):
    cached, device = cached_len, prompt_len
    end = prompt_len + output_len
    rows = []
    for step in range(output_len):
        phase = "prefill" if step == 0 else "decode"
        cached = device
        device += 1
        rows.append((phase, cached, device, device - cached, end - device))
    return rows

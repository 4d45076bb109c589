def admit(waiting, free_pages, reserved_pages, total_pages, page_size):
    admitted, left, refused = [], [], []
    for uid, prompt_len, max_tokens in waiting:
        # The last token is sampled and sent, and its KV never computed.
        pages = -(-(prompt_len + max_tokens - 1) // page_size)
        if pages > total_pages:
            refused.append(uid)
        elif left or pages > free_pages:
            left.append(uid)
        else:
            admitted.append(uid)
            reserved_pages += pages
    return admitted, left, refused

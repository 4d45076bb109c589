def attention(metadata, wrapper, q, layer):
    if not metadata["planned"]:
        wrapper.plan(metadata["indptr"], metadata["indices"], metadata["last_page_len"])
        metadata["planned"] = True
    return wrapper.run(q, layer)

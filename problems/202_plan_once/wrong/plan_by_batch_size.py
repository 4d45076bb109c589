def attention(metadata, wrapper, q, layer):
    size = len(metadata["last_page_len"])
    if getattr(wrapper, "planned_size", None) != size:
        wrapper.plan(metadata["indptr"], metadata["indices"], metadata["last_page_len"])
        wrapper.planned_size = size
    return wrapper.run(q, layer)

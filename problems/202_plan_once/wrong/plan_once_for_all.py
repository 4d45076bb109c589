def attention(metadata, wrapper, q, layer):
    if not getattr(wrapper, "planned", False):
        wrapper.plan(metadata["indptr"], metadata["indices"], metadata["last_page_len"])
        wrapper.planned = True
    return wrapper.run(q, layer)

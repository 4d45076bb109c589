def attention(metadata, wrapper, q, layer):
    if getattr(wrapper, "planned_for", None) is not metadata["indptr"]:
        wrapper.plan(metadata["indptr"], metadata["indices"], metadata["last_page_len"])
        wrapper.planned_for = metadata["indptr"]
    return wrapper.run(q, layer)

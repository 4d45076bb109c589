def attention(metadata, wrapper, q, layer):
    wrapper.plan(metadata["indptr"], metadata["indices"], metadata["last_page_len"])
    return wrapper.run(q, layer)

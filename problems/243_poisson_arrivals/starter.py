def arrivals(rate, uniforms):
    """Times of arrival in seconds, list of len(uniforms) + 1 float.
    rate: float or None; uniforms: list of float.
    """
    raise NotImplementedError

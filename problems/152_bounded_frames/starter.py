def read_frames(chunks, limit):
    """chunks: list of list[int], bytes as they come;
    limit: int, most bytes of a frame's body.

    Returns frames (list of list[int], the bodies), left (int, bytes not
    used) and refused (bool).
    """
    raise NotImplementedError

def graph_sizes(batch_sizes, largest):
    """(sizes: list[int], chosen: list[int], wasted: int).
    batch_sizes: list[int]; largest: int.
    """
    raise NotImplementedError

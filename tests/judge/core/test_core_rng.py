"""The stream of a seed is the same for ever: stored seeds must replay."""

from judge.core.rng import Rng


def test_the_stream_of_a_seed_never_changes():
    rng = Rng(bytes(range(16)), "case 0")
    assert [rng.below(100) for _ in range(8)] == STREAM
    assert Rng(b"seed").shuffled(range(8)) == SHUFFLED


def test_streams_of_one_seed_differ_and_repeat():
    seed = b"0123456789abcdef"
    assert Rng(seed, "a").floats(4) != Rng(seed, "b").floats(4)
    assert Rng(seed, "a").floats(4) == Rng(seed, "a").floats(4)


def test_integers_cover_their_range():
    rng = Rng(b"x")
    assert {rng.integer(-1, 1) for _ in range(200)} == {-1, 0, 1}
    assert len(set(rng.sample(range(50), 20))) == 20


STREAM = [61, 39, 7, 23, 0, 78, 3, 86]
SHUFFLED = [7, 0, 4, 1, 6, 3, 5, 2]

import codecs


def split_tail(data):
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(bytes(data))
    held, _ = decoder.getstate()
    if held and held[0] >= 0xF0:
        return text + decoder.decode(b"", True), []
    return text, list(held)

import codecs


def split_tail(data):
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(bytes(data))
    held, _ = decoder.getstate()
    return text, list(held)

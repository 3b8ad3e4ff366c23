package io.faro;

/** Another codec, of which a test changes something. */
class CodecAround<T> implements RowCodec<T> {
  private final RowCodec<T> codec;

  CodecAround(RowCodec<T> codec) {
    this.codec = codec;
  }

  @Override
  public int rowBytes() {
    return codec.rowBytes();
  }

  @Override
  public int maxBytes(T object) {
    return codec.maxBytes(object);
  }

  @Override
  public int write(T object, RowWriter to) {
    return codec.write(object, to);
  }

  @Override
  public T read(Batch from, int at, int bytes) {
    return codec.read(from, at, bytes);
  }
}

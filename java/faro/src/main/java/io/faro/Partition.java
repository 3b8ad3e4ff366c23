package io.faro;

/**
 * Chooses the receiver of a key. The results are those of {@code faro/hash.h}, so that nodes in C++
 * and Java agree; a test compares them.
 *
 * <p>Threads: any.
 */
public enum Partition {
  /**
   * A 64-bit finalizer: every input bit reaches every output bit. The default, which suits all
   * keys, also sequential or strided ones.
   */
  FINALIZER(0) {
    @Override
    public long hash(long key) {
      return finalizer(key);
    }
  },
  /** Fibonacci hashing: one multiplication. Good for dense integer keys. */
  MULTIPLICATIVE(1) {
    @Override
    public long hash(long key) {
      return multiplicative(key);
    }
  };

  private final int number; // the number that jni/shuffle.cc uses for it; a test compares the two

  Partition(int number) {
    this.number = number;
  }

  /** The number that native methods take for it. */
  int number() {
    return number;
  }

  /** The hash of a key. */
  public abstract long hash(long key);

  /**
   * The receiver, 0 … receiverCount-1, of a key.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if there is no receiver
   */
  public final int receiverOf(long key, int receiverCount) {
    return receiver(hash(key), receiverCount);
  }

  /**
   * Maps a hash to 0 … receiverCount-1 by its high 32 bits, without a division (multiply-shift;
   * Lemire, "Fast random integer generation in an interval", 2019).
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if there is no receiver
   */
  public static int receiver(long hash, int receiverCount) {
    if (receiverCount <= 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, "a key for " + receiverCount + " receivers");
    }
    return (int) (((hash >>> 32) * receiverCount) >>> 32);
  }

  private static long finalizer(long key) {
    key ^= key >>> 30;
    key *= 0xbf58476d1ce4e5b9L;
    key ^= key >>> 27;
    key *= 0x94d049bb133111ebL;
    return key ^ (key >>> 31);
  }

  private static long multiplicative(long key) {
    return key * 0x9e3779b97f4a7c15L;
  }
}

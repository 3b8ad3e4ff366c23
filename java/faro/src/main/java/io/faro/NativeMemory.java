package io.faro;

import static java.lang.invoke.MethodType.methodType;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.ref.Reference;
import java.lang.reflect.Field;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.util.Locale;

/**
 * Memory outside the Java heap, by its address: rings, frames, and the cursors of open frames. Once
 * compiled, an access is one machine instruction, whereas a {@code ByteBuffer} checks its class,
 * its scope, its byte order and its bounds each time.
 *
 * <p>No bounds are checked here: a wrong address crashes the JVM or corrupts its memory. Callers
 * access only what lies between two addresses that native code has given them, and only as long as
 * these are valid. Numbers are little-endian, as on every platform that Faro supports, and need no
 * alignment.
 *
 * <p>It uses {@code sun.misc.Unsafe} where the JDK does not warn of that, because it adds nothing
 * to the start of a JVM. On later JDKs it uses the foreign memory API (JEP 454) through method
 * handles, because this is compiled for Java 17.
 *
 * <p>Threads: any.
 */
@SuppressWarnings("removal")
final class NativeMemory {
  // The first feature release that prints a warning when it is used.
  private static final int UNSAFE_WARNS = 24;
  private static final boolean FOREIGN = Runtime.version().feature() >= UNSAFE_WARNS;
  private static final sun.misc.Unsafe UNSAFE = FOREIGN ? null : unsafe();
  private static final long BYTES_BEGIN = sun.misc.Unsafe.ARRAY_BYTE_BASE_OFFSET;
  private static final long LONGS_BEGIN = sun.misc.Unsafe.ARRAY_LONG_BASE_OFFSET;

  static {
    if (ByteOrder.nativeOrder() != ByteOrder.LITTLE_ENDIAN) {
      throw new ExceptionInInitializerError("Faro needs a little-endian processor");
    }
  }

  private NativeMemory() {}

  private static sun.misc.Unsafe unsafe() {
    try {
      Field instance = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
      instance.setAccessible(true);
      return (sun.misc.Unsafe) instance.get(null);
    } catch (ReflectiveOperationException problem) {
      throw new ExceptionInInitializerError(problem);
    }
  }

  static byte getByte(long address) {
    if (!FOREIGN) {
      return UNSAFE.getByte(address);
    }
    try {
      return (byte) Foreign.GET_BYTE.invokeExact(address);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  static short getShort(long address) {
    if (!FOREIGN) {
      return UNSAFE.getShort(address);
    }
    try {
      return (short) Foreign.GET_SHORT.invokeExact(address);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  static int getInt(long address) {
    if (!FOREIGN) {
      return UNSAFE.getInt(address);
    }
    try {
      return (int) Foreign.GET_INT.invokeExact(address);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  static long getLong(long address) {
    if (!FOREIGN) {
      return UNSAFE.getLong(address);
    }
    try {
      return (long) Foreign.GET_LONG.invokeExact(address);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  static void putByte(long address, byte value) {
    if (!FOREIGN) {
      UNSAFE.putByte(address, value);
      return;
    }
    try {
      Foreign.PUT_BYTE.invokeExact(address, value);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  static void putShort(long address, short value) {
    if (!FOREIGN) {
      UNSAFE.putShort(address, value);
      return;
    }
    try {
      Foreign.PUT_SHORT.invokeExact(address, value);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  static void putInt(long address, int value) {
    if (!FOREIGN) {
      UNSAFE.putInt(address, value);
      return;
    }
    try {
      Foreign.PUT_INT.invokeExact(address, value);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  static void putLong(long address, long value) {
    if (!FOREIGN) {
      UNSAFE.putLong(address, value);
      return;
    }
    try {
      Foreign.PUT_LONG.invokeExact(address, value);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  /** Copies {@code count} bytes into an array; the caller has checked that they fit. */
  static void get(long address, byte[] to, int index, int count) {
    if (!FOREIGN) {
      UNSAFE.copyMemory(null, address, to, BYTES_BEGIN + index, count);
      return;
    }
    try {
      Foreign.COPY_TO_BYTES.invokeExact(address, (Object) to, index, count);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  /** Copies {@code count} bytes of an array; the caller has checked that they are there. */
  static void put(long address, byte[] from, int index, int count) {
    if (!FOREIGN) {
      UNSAFE.copyMemory(from, BYTES_BEGIN + index, null, address, count);
      return;
    }
    try {
      Foreign.COPY_FROM_BYTES.invokeExact((Object) from, index, address, count);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  /** Copies {@code count} longs into an array; the caller has checked that they fit. */
  static void get(long address, long[] to, int index, int count) {
    if (!FOREIGN) {
      UNSAFE.copyMemory(
          null, address, to, LONGS_BEGIN + (long) index * Long.BYTES, (long) count * Long.BYTES);
      return;
    }
    try {
      Foreign.COPY_TO_LONGS.invokeExact(address, (Object) to, index, count);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  /** Copies {@code count} longs of an array; the caller has checked that they are there. */
  static void put(long address, long[] from, int index, int count) {
    if (!FOREIGN) {
      UNSAFE.copyMemory(
          from, LONGS_BEGIN + (long) index * Long.BYTES, null, address, (long) count * Long.BYTES);
      return;
    }
    try {
      Foreign.COPY_FROM_LONGS.invokeExact((Object) from, index, address, count);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  /** Between two places outside the heap. */
  static void copy(long from, long to, long bytes) {
    if (!FOREIGN) {
      UNSAFE.copyMemory(from, to, bytes);
      return;
    }
    try {
      Foreign.COPY.invokeExact(from, to, bytes);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  /** Fills the remaining space of a buffer, and moves its position to its limit. */
  static void get(long address, ByteBuffer to) {
    int count = to.remaining();
    if (to.isReadOnly()) {
      throw new ReadOnlyBufferException();
    }
    if (to.isDirect()) {
      copy(address, address(to) + to.position(), count);
      Reference.reachabilityFence(to);
    } else {
      get(address, to.array(), to.arrayOffset() + to.position(), count);
    }
    to.position(to.limit());
  }

  /** Copies the remaining bytes of a buffer, and moves its position to its limit. */
  static void put(long address, ByteBuffer from) {
    int count = from.remaining();
    if (from.isDirect()) {
      copy(address(from) + from.position(), address, count);
      Reference.reachabilityFence(from);
    } else if (from.hasArray()) {
      put(address, from.array(), from.arrayOffset() + from.position(), count);
    } else { // read-only, on the heap
      byte[] bytes = new byte[count];
      from.duplicate().get(bytes);
      put(address, bytes, 0, count);
    }
    from.position(from.limit());
  }

  /**
   * The address where a direct buffer begins, whatever its position. Valid as long as the buffer is
   * reachable.
   */
  static long address(Buffer direct) {
    if (!FOREIGN) {
      return UNSAFE.getLong(direct, BufferAddress.OFFSET);
    }
    Buffer whole = direct.duplicate().clear();
    try {
      return (long) Foreign.ADDRESS.invokeExact(whole);
    } catch (Throwable problem) {
      throw error(problem);
    }
  }

  // Errors of the JVM are passed on as they are: an InternalError if memory cannot be read.
  private static Error error(Throwable problem) {
    return problem instanceof Error error ? error : new AssertionError(problem);
  }

  private static final class BufferAddress {
    static final long OFFSET;

    static {
      try {
        OFFSET = UNSAFE.objectFieldOffset(Buffer.class.getDeclaredField("address"));
      } catch (NoSuchFieldException problem) {
        throw new ExceptionInInitializerError(problem);
      }
    }
  }

  /** {@code java.lang.foreign}: one segment that covers all memory. */
  private static final class Foreign {
    static final MethodHandle GET_BYTE;
    static final MethodHandle GET_SHORT;
    static final MethodHandle GET_INT;
    static final MethodHandle GET_LONG;
    static final MethodHandle PUT_BYTE;
    static final MethodHandle PUT_SHORT;
    static final MethodHandle PUT_INT;
    static final MethodHandle PUT_LONG;
    static final MethodHandle COPY_TO_BYTES;
    static final MethodHandle COPY_FROM_BYTES;
    static final MethodHandle COPY_TO_LONGS;
    static final MethodHandle COPY_FROM_LONGS;
    static final MethodHandle COPY;
    static final MethodHandle ADDRESS;

    static {
      try {
        Foreign foreign = new Foreign();
        GET_BYTE = foreign.get(byte.class);
        GET_SHORT = foreign.get(short.class);
        GET_INT = foreign.get(int.class);
        GET_LONG = foreign.get(long.class);
        PUT_BYTE = foreign.put(byte.class);
        PUT_SHORT = foreign.put(short.class);
        PUT_INT = foreign.put(int.class);
        PUT_LONG = foreign.put(long.class);
        COPY_TO_BYTES = foreign.copyTo(byte.class);
        COPY_FROM_BYTES = foreign.copyFrom(byte.class);
        COPY_TO_LONGS = foreign.copyTo(long.class);
        COPY_FROM_LONGS = foreign.copyFrom(long.class);
        COPY = foreign.copy();
        ADDRESS = foreign.address();
      } catch (ReflectiveOperationException problem) {
        throw new ExceptionInInitializerError(problem);
      }
    }

    private final Class<?> segmentType = Class.forName("java.lang.foreign.MemorySegment");
    private final Class<?> layoutType = Class.forName("java.lang.foreign.ValueLayout");
    private final Object everything;

    private Foreign() throws ReflectiveOperationException {
      Object nothing = segmentType.getField("NULL").get(null);
      // Restricted, as System.load is: both are allowed by --enable-native-access.
      everything = segmentType.getMethod("reinterpret", long.class).invoke(nothing, Long.MAX_VALUE);
    }

    /** (address) value. */
    private MethodHandle get(Class<?> value) throws ReflectiveOperationException {
      return segment("get", methodType(value, layoutOf(value), long.class), layout(value));
    }

    /** (address, value) void. */
    private MethodHandle put(Class<?> value) throws ReflectiveOperationException {
      return segment(
          "set", methodType(void.class, layoutOf(value), long.class, value), layout(value));
    }

    /** (address, array, index, count) void. */
    private MethodHandle copyTo(Class<?> element) throws ReflectiveOperationException {
      MethodHandle copy =
          copyOf(
              methodType(
                  void.class,
                  segmentType,
                  layoutType,
                  long.class,
                  Object.class,
                  int.class,
                  int.class));
      return MethodHandles.insertArguments(copy, 0, everything, layout(element));
    }

    /** (array, index, address, count) void. */
    private MethodHandle copyFrom(Class<?> element) throws ReflectiveOperationException {
      MethodHandle copy =
          copyOf(
              methodType(
                  void.class,
                  Object.class,
                  int.class,
                  segmentType,
                  layoutType,
                  long.class,
                  int.class));
      return MethodHandles.insertArguments(copy, 2, everything, layout(element));
    }

    /** (from, to, bytes) void. */
    private MethodHandle copy() throws ReflectiveOperationException {
      MethodHandle copy =
          copyOf(
              methodType(void.class, segmentType, long.class, segmentType, long.class, long.class));
      return MethodHandles.insertArguments(
          MethodHandles.insertArguments(copy, 0, everything), 1, everything);
    }

    private MethodHandle copyOf(MethodType signature) throws ReflectiveOperationException {
      return MethodHandles.publicLookup().findStatic(segmentType, "copy", signature);
    }

    /** (direct buffer at position 0) address. */
    private MethodHandle address() throws ReflectiveOperationException {
      MethodHandles.Lookup lookup = MethodHandles.publicLookup();
      return MethodHandles.filterReturnValue(
          lookup.findStatic(segmentType, "ofBuffer", methodType(segmentType, Buffer.class)),
          lookup.findVirtual(segmentType, "address", methodType(long.class)));
    }

    private MethodHandle segment(String name, MethodType signature, Object layout)
        throws ReflectiveOperationException {
      MethodHandle access = MethodHandles.publicLookup().findVirtual(segmentType, name, signature);
      return MethodHandles.insertArguments(access, 0, everything, layout);
    }

    private static Class<?> layoutOf(Class<?> value) throws ReflectiveOperationException {
      String name = value.getName();
      return Class.forName(
          "java.lang.foreign.ValueLayout$Of" + Character.toUpperCase(name.charAt(0))
              + name.substring(1));
    }

    private Object layout(Class<?> value) throws ReflectiveOperationException {
      String name = "JAVA_" + value.getName().toUpperCase(Locale.ROOT);
      return layoutType.getField(value == byte.class ? name : name + "_UNALIGNED").get(null);
    }
  }
}

package io.faro;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Scanner;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a JVM has resident beside its heap, against what {@code memory.limit_bytes} counts: by the growth from few channels to many. */
class ResidentTest {
  private static final int FEW = 100;
  private static final int MANY = 1000;
  private static final int AT_ONCE = 10;
  private static final int FRAMES = 8; // over each channel, each way: together they fill half of a ring
  private static final int RING_BYTES = 4096;

  /** Interpreted, with a heap that is there from the beginning: only channels make this process larger. */
  private static final List<String> JVM =
      List.of("-Xint", "-Xms64m", "-Xmx64m", "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch");

  /** The allocator keeps nothing by chance. */
  private static final List<String> ENVIRONMENT =
      List.of("env", "MALLOC_ARENA_MAX=1", "MALLOC_MMAP_THRESHOLD_=131072", "MALLOC_TRIM_THRESHOLD_=131072");

  /** Opens few channels to an endpoint and then many, or waits for those of the other side, and says what it has. */
  static final class Side {
    private static final String TEXT = "x".repeat(RING_BYTES / (2 * FRAMES));

    public static void main(String[] arguments) throws Exception {
      String transport = arguments[0];
      try (EndpointSide side =
          new EndpointSide(
              new EndpointSpec().withChannelLimit(MANY),
              config ->
                  config
                      .set(Setting.TRANSPORT, transport)
                      .set(Setting.COUNTERS_FOLDER, "")
                      .set(Setting.LIVENESS_TIMEOUT_MS, 60_000)
                      .set(Setting.CONNECT_TIMEOUT_MS, 60_000))) {
        System.out.println(side.endpoint.address());
        String dialled = ChildJvm.readLine();
        int opened = 0;
        int taken = 0;
        for (int count : new int[] {FEW, MANY}) {
          ChildJvm.readLine();
          while (opened < count) {
            int next = Math.min(count, opened + AT_ONCE);
            for (int i = opened; !dialled.equals("-") && i < next; i++) {
              side.poller.connect(dialled, new ChannelSpec().withRings(RING_BYTES, RING_BYTES));
            }
            while (opened < next || taken < next * FRAMES) {
              EndpointSide.Event event = side.next();
              switch (event.kind()) {
                case OPENED -> {
                  opened++;
                  for (int i = 0; i < FRAMES; i++) {
                    assertTrue(side.send(event.channel(), TEXT));
                  }
                }
                case FRAME -> {
                  taken++;
                  side.poller.release(event.channel(), event.token());
                }
                default -> throw new IllegalStateException(String.valueOf(side.poller.failure(event.channel())));
              }
            }
          }
          System.out.println(resident() + " " + side.endpoint.metrics().memoryBytes());
          ChildJvm.readLine(); // until the other one has looked
        }
        ChildJvm.readLine();
      }
    }

    /** The resident bytes, counted as tests/support/resident.h does. */
    private static long resident() throws IOException {
      long kibibytes = 0;
      for (String line : Files.readAllLines(Path.of("/proc/self/smaps_rollup"))) {
        if (line.startsWith("Pss_Anon:") || line.startsWith("Pss_Shmem:")) {
          kibibytes += Long.parseLong(line.replaceAll("\\D+", " ").trim());
        }
      }
      return kibibytes * 1024;
    }
  }

  private record Amount(long resident, long counted) {
    static Amount of(ChildJvm side) throws IOException {
      try (Scanner said = new Scanner(side.line())) {
        return new Amount(said.nextLong(), said.nextLong());
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void growsWithChannelsByNoMoreThanIsCounted(String transport) throws Exception {
    try (ChildJvm accepts = new ChildJvm(ENVIRONMENT, JVM, Side.class, transport);
        ChildJvm dials = new ChildJvm(ENVIRONMENT, JVM, Side.class, transport)) {
      List<ChildJvm> sides = List.of(accepts, dials);
      accepts.tell("-");
      String address = accepts.line();
      dials.line();
      dials.tell(address);
      Amount[][] amounts = new Amount[2][];
      for (int i = 0; i < 2; i++) {
        for (ChildJvm side : sides) {
          side.tell("open");
        }
        amounts[i] = new Amount[] {Amount.of(accepts), Amount.of(dials)};
        for (ChildJvm side : sides) {
          side.tell("looked");
        }
      }
      for (int side = 0; side < 2; side++) {
        long resident = amounts[1][side].resident() - amounts[0][side].resident();
        long counted = amounts[1][side].counted() - amounts[0][side].counted();
        String what =
            "%s, %s: a further channel takes %d bytes, of which %d are counted"
                .formatted(transport, side == 0 ? "accepts" : "dials", resident / (MANY - FEW), counted / (MANY - FEW));
        System.out.println(what);
        assertTrue(counted >= (MANY - FEW) * 2L * RING_BYTES / (transport.equals("shm") ? 2 : 1), what);
        assertTrue(resident <= counted + counted / 10, what);
        assertTrue(resident >= counted / 2, what); // it does measure them
      }
    }
  }
}

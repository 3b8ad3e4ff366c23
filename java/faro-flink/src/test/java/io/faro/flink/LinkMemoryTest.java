package io.faro.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How large the rings of the next link are, by what the others take. */
class LinkMemoryTest {
  private static final int LARGE = 576 << 10;
  private static final int MIDDLE = 72 << 10;
  private static final int SMALL = 24 << 10;
  private static final long OPENING = 1_000;

  private final List<LinkRings> sizes =
      List.of(
          new LinkRings(64 << 10, 512 << 10, LARGE),
          new LinkRings(8 << 10, 64 << 10, MIDDLE),
          new LinkRings(8 << 10, 16 << 10, SMALL));
  private final List<String> warnings = new ArrayList<>();
  private long taken;
  private long now;

  private LinkMemory memory(long limit, int expected) {
    return new LinkMemory(sizes, limit, expected, OPENING, () -> taken, () -> now, warnings::add);
  }

  @Test
  void linksThatAreExpectedGetTheRingsThatWereReckoned() {
    LinkMemory memory = memory(4L * LARGE, 4);
    for (int i = 0; i < 4; i++) {
      assertEquals(LARGE, memory.dial().rings().memoryBytes());
    }
  }

  @Test
  void furtherLinksGetSmallerRingsAndManyMoreFit() {
    LinkMemory memory = memory(64 << 20, 64);
    long sum = 0;
    int links = 0;
    for (long last = LARGE; ; links++) {
      long next = memory.dial().rings().memoryBytes();
      if (sum + next > 64 << 20) {
        break;
      }
      assertTrue(next <= last, next + " after " + last);
      sum += next;
      last = next;
    }
    assertTrue(links >= 160, links + " links"); // with one price for all 113
    assertTrue(sum > (64 << 20) - SMALL, sum + " bytes");
  }

  @Test
  void aLinkThatEndsMakesRoomForOneOfItsSize() {
    LinkMemory memory = memory(2L * LARGE + SMALL, 2);
    LinkMemory.Reservation first = memory.dial();
    memory.dial();
    assertEquals(SMALL, memory.dial().rings().memoryBytes());
    first.close();
    first.close();
    assertEquals(LARGE + SMALL, memory.reserved());
  }

  @Test
  void memoryThatFaroCountsButNoLinkHasIsNotGivenAway() {
    LinkMemory memory = memory(4L * LARGE, 4);
    taken = 4L * LARGE - MIDDLE; // of links that are no more
    assertEquals(MIDDLE, memory.dial().rings().memoryBytes());
  }

  @Test
  void anAcceptedLinkGetsNoMoreThanItsPeerAsksFor() {
    LinkMemory memory = memory(64 << 20, 64);
    assertEquals(64 << 10, memory.accept(100 << 10).dataBytes());
    assertEquals(16 << 10, memory.accept(4 << 10).dataBytes());
    assertEquals(512 << 10, memory.accept(1 << 20).dataBytes());
  }

  @Test
  void anAcceptedLinkThatNeverOpensIsForgotten() {
    LinkMemory memory = memory(2L * LARGE, 2);
    memory.accept(1 << 20);
    now = OPENING;
    memory.accept(1 << 20);
    assertEquals(2L * LARGE, memory.reserved());
    now = OPENING + 1;
    memory.dial();
    assertEquals(2L * LARGE, memory.reserved()); // the second, and this one
  }

  @Test
  void anAcceptedLinkThatOpensKeepsWhatItWasPromised() {
    LinkMemory memory = memory(2L * LARGE, 2);
    memory.accept(64 << 10);
    LinkMemory.Reservation opened = memory.accepted();
    now = 2 * OPENING;
    memory.dial();
    assertEquals(MIDDLE + LARGE, memory.reserved());
    opened.close();
    assertEquals(LARGE, memory.reserved());
  }

  @Test
  void threeQuartersOfTheLimitAreWarnedOfOnceUntilHalfIsFree() {
    LinkMemory memory = memory(4L * LARGE, 4);
    memory.dial();
    memory.dial();
    assertEquals(List.of(), warnings);
    LinkMemory.Reservation third = memory.dial();
    LinkMemory.Reservation fourth = memory.dial();
    assertEquals(1, warnings.size());
    String text = warnings.get(0);
    assertTrue(text.startsWith("3 links take 1769472 of the 2359296 bytes that faro.memory.limit allows"), text);
    assertTrue(text.contains("faro.links.expected is 4"), text);
    third.close();
    fourth.close();
    memory.dial().close();
    assertEquals(1, warnings.size()); // half of it was never free
    LinkMemory.Reservation again = memory.dial();
    again.close();
    assertEquals(1, warnings.size());
  }

  @Test
  void whatWasWarnedOfIsWarnedOfAgainAfterHalfWasFree() {
    LinkMemory memory = memory(4L * LARGE, 4);
    List<LinkMemory.Reservation> links = new ArrayList<>();
    for (int round = 1; round <= 2; round++) {
      for (int i = 0; i < 4; i++) {
        links.add(memory.dial());
      }
      assertEquals(round, warnings.size());
      links.forEach(LinkMemory.Reservation::close);
      links.clear();
    }
  }
}

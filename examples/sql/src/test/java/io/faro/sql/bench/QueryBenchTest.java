package io.faro.sql.bench;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.sql.shell.ShellProcess;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is measured, and that it is measured on what really ran; not how fast it is. */
@Timeout(120)
class QueryBenchTest {
  private record Ended(int status, String out, String err) {}

  private static Ended run(String... arguments) throws Exception {
    return runWith("", arguments);
  }

  private static Ended runWith(String input, String... arguments) throws Exception {
    List<String> command = ShellProcess.jvm(QueryBench.class);
    command.addAll(List.of(arguments));
    Process process = new ProcessBuilder(command).start();
    try {
      try (OutputStream in = process.getOutputStream()) {
        in.write(input.getBytes(UTF_8));
      }
      assertTrue(process.waitFor(60, TimeUnit.SECONDS));
      return new Ended(
          process.exitValue(),
          new String(process.getInputStream().readAllBytes(), UTF_8),
          new String(process.getErrorStream().readAllBytes(), UTF_8));
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
  }

  private static String field(String json, String name) {
    Matcher field = Pattern.compile("\"" + name + "\": \"?([^,\"}\\]]*)").matcher(json);
    assertTrue(field.find(), json);
    return field.group(1);
  }

  @Test
  void aQueryGivesTheSameOnOneNodeAndOverBothCarriers() throws Exception {
    List<String> checksums = new ArrayList<>();
    for (String shape : List.of("--nodes=1 --workers=1", "--nodes=2 --workers=2", "--nodes=2 --workers=2 --carrier=sockets",
        "--nodes=2 --workers=1 --host=127.0.0.2,127.0.0.3 --transport=tcp")) {
      Ended ended =
          run((shape + " --data=tpcc --scale=0.2 --warmup=1 --laps=1 --sampled=5 --queries").split(" "), "query 1");
      assertEquals(0, ended.status, ended.err);
      assertEquals("true", field(ended.out, "verified"));
      assertTrue(Double.parseDouble(field(ended.out, "seconds")) > 0, ended.out);
      assertTrue(Double.parseDouble(field(ended.out, "cpu_seconds")) > 0, ended.out);
      double share = Double.parseDouble(field(ended.out, "shuffle_share"));
      assertTrue(share <= 1 && (share > 0 || shape.startsWith("--nodes=1")), ended.out);
      checksums.add(field(ended.out, "rows") + " " + field(ended.out, "checksum"));
    }
    assertEquals(1, checksums.stream().distinct().count(), checksums.toString());
  }

  private static Ended run(String[] arguments, String last) throws Exception {
    List<String> all = new ArrayList<>(List.of(arguments));
    all.add(last);
    return run(all.toArray(String[]::new));
  }

  @Test
  void whatFailsIsSaidInALine() throws Exception {
    Ended late = run("--nodes=2", "--workers=1", "--data=tpcc", "--scale=0.1", "--limit=0");
    assertEquals(1, late.status, late.out);
    assertTrue(late.err.contains("it has run into its time limit of 0 s"), late.err);
    Ended unknown = run("--nodes=1", "--data=tpcc", "--queries=q9");
    assertEquals(1, unknown.status);
    assertEquals("query-bench: queries of these tables are [query 1, query 2, query 3]", unknown.err.strip());
    Ended nowhere = run("--nodes=2", "--host=127.0.0.1,192.0.2.1");
    assertEquals(1, nowhere.status);
    assertTrue(nowhere.err.startsWith("query-bench: no node can listen on host 192.0.2.1: "), nowhere.err);
  }

  @Test
  void whoRunsInTurnWaitsForItsInputBeforeEachRound() throws Exception {
    String[] arguments = "--in-turn --nodes=1 --data=tpcc --scale=0.1 --warmup=1 --laps=1 --sampled=1".split(" ");
    Ended ended = runWith("\n\n\n", arguments);
    assertEquals(0, ended.status, ended.err);
    assertTrue(ended.out.startsWith("turn\nturn\nturn\n{\"queries\": ["), ended.out);
    Ended early = runWith("\n\n", arguments);
    assertEquals(1, early.status, early.out);
    assertEquals("turn\nturn\nturn\n", early.out);
    assertEquals("query-bench: the input has ended before its turn", early.err.strip());
  }

  @Test
  void aPlaceIsThatOfTheInnermostCallWhichIsNotTheJdks() {
    assertTrue(ShuffleShare.isShuffle(stack("java.math.BigDecimal", "io.faro.SchemaCodec", "io.faro.sql.exec.ExchangedRows", "Baz")));
    assertTrue(ShuffleShare.isShuffle(stack("sun.nio.ch.EPoll", "io.faro.sockets.SocketsWorker", "Baz")));
    assertTrue(ShuffleShare.isShuffle(stack("io.faro.sql.plan.RowTypes", "io.faro.sql.plan.Exchange")));
    assertFalse(ShuffleShare.isShuffle(stack("java.util.HashMap", "org.apache.calcite.linq4j.EnumerableDefaults", "io.faro.sql.plan.Plan")));
    assertFalse(ShuffleShare.isShuffle(stack("Baz$1", "io.faro.sql.exec.ExchangedRows"))); // whose input it is
    assertFalse(ShuffleShare.isShuffle(stack("io.faro.sql.exec.CheckedRows", "io.faro.sql.exec.ExchangedRows")));
    assertFalse(ShuffleShare.isShuffle(stack("java.lang.Thread")));
  }

  /** A name that no class has would pass for anything. */
  private static void checkExists(String name) {
    if (!name.startsWith("Baz")) { // what Calcite generates
      assertDoesNotThrow(() -> Class.forName(name));
    }
  }

  private static StackTraceElement[] stack(String... classes) {
    return List.of(classes).stream()
        .peek(QueryBenchTest::checkExists)
        .map(name -> new StackTraceElement(name, "call", null, -1))
        .toArray(StackTraceElement[]::new);
  }

  @Test
  void aShareIsThatOfAllThatWasSeenAndNoneIfNothingWas() {
    ShuffleShare.Times half = new ShuffleShare.Times(10, 20, 100);
    ShuffleShare.Times unseen = new ShuffleShare.Times(0, 0, 300);
    MeasuredEngine.Spent spent =
        new MeasuredEngine.Spent(1, half, 0).plus(MeasuredEngine.Spent.parse(new MeasuredEngine.Spent(2, unseen, 100).encoded()));
    assertEquals(new MeasuredEngine.Spent(3, new ShuffleShare.Times(10, 20, 400), 100), spent);
    assertEquals(OptionalDouble.of((200.0 + 100) / 500), spent.shuffleShare());
    assertEquals(OptionalDouble.empty(), new MeasuredEngine.Spent(2, unseen, 100).shuffleShare());
  }

  @Test
  void aWorkerThatHasEndedDoesNotEndTheLook() throws Exception {
    Thread ended = new Thread(() -> {}, "ended");
    ended.start();
    ended.join();
    AtomicBoolean isOver = new AtomicBoolean();
    Thread running =
        new Thread(
            () -> {
              while (!isOver.get()) {
                Thread.onSpinWait();
              }
            },
            "running");
    running.start();
    ShuffleShare share = new ShuffleShare();
    try {
      ShuffleShare.Times times = ShuffleShare.NONE;
      while (times.seenNanos() == 0) { // the test's time limit ends it else
        share.start(List.of(ended, running));
        Thread.sleep(20);
        times = share.stop();
      }
      assertTrue(times.allNanos() >= times.seenNanos(), times.toString());
    } finally {
      isOver.set(true);
      running.join();
    }
  }

  @Test
  void compilersAreKnownByTheKernelsNamesOfTheirThreads() throws Exception {
    assertTrue(CpuTime.isCompiler("C1 CompilerThre"));
    assertTrue(CpuTime.isCompiler("C2 CompilerThre"));
    assertFalse(CpuTime.isCompiler("worker 0"));
    boolean isOneHere = false;
    try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
      for (Path task : tasks) {
        isOneHere |= CpuTime.isCompiler(CpuTime.read(task.resolve("comm")));
      }
    }
    assertTrue(isOneHere);
    assertEquals("", CpuTime.read(Path.of("/proc/self/task/0/comm"))); // of a thread that has ended meanwhile
  }

  @Test
  void aChecksumIsThatOfTheValuesWhateverTheirOrder() {
    List<Object[]> rows = List.of(new Object[] {1, new BigDecimal("2.50")}, new Object[] {null, "x"});
    List<Object[]> same = List.of(new Object[] {null, "x"}, new Object[] {1, new BigDecimal("2.5")});
    assertEquals(ResultChecksum.of(rows), ResultChecksum.of(same));
    assertEquals(ResultChecksum.of(List.<Object[]>of(new Object[] {0.1 + 0.2})), ResultChecksum.of(List.<Object[]>of(new Object[] {0.3})));
    assertNotEquals(ResultChecksum.of(rows), ResultChecksum.of(rows.subList(0, 1)));
    List<Object[]> twice = List.of(rows.get(0), rows.get(0));
    assertNotEquals(ResultChecksum.of(List.of()), ResultChecksum.of(twice));
  }
}

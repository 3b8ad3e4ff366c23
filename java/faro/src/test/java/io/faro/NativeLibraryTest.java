package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** How loading fails, each time in a JVM of its own. */
@Timeout(30)
class NativeLibraryTest {
  @TempDir Path folder;
  private String classPath = System.getProperty("java.class.path");
  private Class<?> program = Program.class;
  private final Map<String, String> environment = new HashMap<>();

  /** What the JVM of each test runs: prints the cause, which isAvailable and ensureAvailable agree on. */
  public static final class Program {
    public static void main(String[] arguments) {
      if (Faro.isAvailable()) {
        System.out.println("available");
        return;
      }
      try {
        Faro.ensureAvailable();
      } catch (FaroException cause) {
        System.out.println(cause.code() + ": " + cause.getMessage());
      }
    }
  }

  private String run(String... properties) throws Exception {
    Process process = start(properties);
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), output);
    assertFalse(JniCheck.isComplaint(output), output);
    return output;
  }

  private Process start(String... properties) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Xcheck:jni");
    command.addAll(List.of(properties));
    command.addAll(List.of("-cp", classPath, program.getName()));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().putAll(environment);
    return builder.start();
  }

  private Path copy() throws Exception {
    Path copy = folder.resolve("copy.so");
    String resource = "native/" + NativeLibrary.platform() + "/libfaro_jni.so";
    try (InputStream library = Faro.class.getResourceAsStream(resource)) {
      Files.copy(library, copy);
    }
    return copy;
  }

  /** Where a file comes before that of the jar, in the class path from now on. */
  private Path inFrontOfTheJar(String name) throws Exception {
    classPath = folder + File.pathSeparator + classPath;
    return Files.createDirectories(folder.resolve("io/faro/native/" + NativeLibrary.platform())).resolve(name);
  }

  private static void assertNames(String output, String... parts) {
    assertTrue(output.startsWith("SYSTEM_ERROR: "), output);
    for (String part : parts) {
      assertTrue(output.contains(part), output);
    }
  }

  @Test
  void aJarWithoutLibrariesIsNotSaidToHaveSome() {
    assertEquals(
        "this jar has no library for the platform linux-x86_64, and none for any other: it was packed without libraries",
        NativeLibrary.absent("linux-x86_64", ""));
    assertEquals(
        "this jar has no library for the platform linux-riscv64, only for linux-x86_64",
        NativeLibrary.absent("linux-riscv64", "linux-x86_64"));
  }

  @Test
  void loadsFromTheJarAndLeavesNoFile() throws Exception {
    assertEquals("available", run("-Dfaro.native.folder=" + folder).strip());
    assertEquals(List.of(), filesOf(folder));
  }

  private static List<Path> filesOf(Path folder) throws Exception {
    try (var files = Files.list(folder)) {
      return files.toList();
    }
  }

  @Test
  void whatAJvmLeavesThatIsKilledWhileItLoadsIsDeletedByTheNext() throws Exception {
    Path target = Files.createDirectory(folder.resolve("target"));
    String jars = classPath;
    // A library that comes through a pipe, and never as a whole.
    Path pipe = inFrontOfTheJar("libfaro_jni.so");
    assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
    Process killed = start("-Dfaro.native.folder=" + target);
    try (OutputStream library = new FileOutputStream(pipe.toFile())) {
      library.write(new byte[1 << 20]); // a pipe holds 64 KiB of it: most was read, and written to the file
      killed.destroyForcibly().waitFor();
    }
    assertEquals(1, filesOf(target).size());
    assertTrue(Files.size(filesOf(target).get(0)) > 0);
    classPath = jars;
    assertEquals("available", run("-Dfaro.native.folder=" + target).strip());
    assertEquals(List.of(), filesOf(target));
  }

  @Test
  void whatAnotherJvmIsLoadingIsNotDeleted() throws Exception {
    try (UnpackedFile loading = UnpackedFile.of(new ByteArrayInputStream(new byte[100]), folder)) {
      assertEquals("available", run("-Dfaro.native.folder=" + folder).strip());
      assertEquals(List.of(loading.path()), filesOf(folder));
    }
    assertEquals(List.of(), filesOf(folder));
  }

  /** Is interrupted when it asks first. */
  public static final class Interrupted {
    public static void main(String[] arguments) {
      Thread.currentThread().interrupt();
      System.out.println(Faro.isAvailable() + " " + Thread.interrupted() + " " + Faro.isAvailable());
    }
  }

  @Test
  void aThreadThatIsInterruptedLoadsItToo() throws Exception {
    program = Interrupted.class;
    assertEquals("true true true", run("-Dfaro.native.folder=" + folder).strip());
    assertEquals("true true true", run("-Dfaro.native.library=" + copy()).strip());
    assertEquals(List.of(folder.resolve("copy.so")), filesOf(folder));
  }

  @Test
  void whatIsNoFileOfFarosIsNotDeleted() throws Exception {
    Path link = Files.createSymbolicLink(folder.resolve("libfaro-unpacked-1-link.so"), copy());
    Path other = Files.writeString(folder.resolve("libfaro-unpacked-1-other.txt"), "");
    assertEquals("available", run("-Dfaro.native.folder=" + folder).strip());
    assertTrue(Files.isSymbolicLink(link));
    assertTrue(Files.exists(other));
    assertTrue(Files.exists(folder.resolve("copy.so")));
  }

  @Test
  void loadsTheFileThatThePropertyNames() throws Exception {
    assertEquals("available", run("-Dfaro.native.library=" + copy()).strip());
  }

  @Test
  void namesAMissingFile() throws Exception {
    Path missing = folder.resolve("missing.so");
    assertNames(run("-Dfaro.native.library=" + missing), missing.toString(), "faro.native.library");
  }

  @Test
  void namesATruncatedFile() throws Exception {
    Path cut = copy();
    Files.write(cut, java.util.Arrays.copyOf(Files.readAllBytes(cut), 1000));
    assertNames(run("-Dfaro.native.library=" + cut), cut.toString(), "cut short: 1000 bytes");
  }

  @Test
  void saysWhatTheLoaderMissesOnAnOlderSystem() throws Exception {
    // In ISO 8859-1 every byte is a character: the versions of glibc that it needs become ones
    // which no system has.
    Path newer = copy();
    String library = Files.readString(newer, StandardCharsets.ISO_8859_1);
    Files.writeString(newer, library.replace("\0GLIBC_2.", "\0GLIBC_9."), StandardCharsets.ISO_8859_1);
    assertNames(run("-Dfaro.native.library=" + newer), newer.toString(), "version `GLIBC_9.", "' not found");
  }

  @Test
  void refusesALibraryOfAnotherBuild() throws Exception {
    Files.writeString(inFrontOfTheJar("build-id"), "0.0.0-other");
    assertNames(run(), "the jar of build 0.0.0-other");
  }

  @Test
  void namesAFolderThatIsNotThere() throws Exception {
    Path missing = folder.resolve("missing");
    assertNames(run("-Dfaro.native.folder=" + missing), missing.toString(), "faro.native.folder");
  }

  @Test
  void namesAPlatformThatTheJarHasNot() throws Exception {
    assertNames(run("-Dos.arch=sparc"), "linux-sparc", "only for " + NativeLibrary.platform());
  }

  /** Opens a session over verbs, and prints why that is not possible. */
  public static final class OverVerbs {
    public static void main(String[] arguments) throws InterruptedException {
      SessionConfig.Builder config = SessionConfig.builder().cluster(0, Cluster.heldAddresses(1));
      Session.open(config.build()).close(); // without verbs it always works
      try {
        Session.open(config.set(Setting.TRANSPORT, "verbs").build()).close();
        System.out.println("works");
      } catch (FaroException cause) {
        System.out.println(cause.code() + ": " + cause.getMessage());
      }
    }
  }

  @Test
  void theVerbsModuleOfTheJarIsLoadedAndLeavesNoFile() throws Exception {
    program = OverVerbs.class;
    // Unless the machine has a device.
    String output = run("-Dfaro.native.folder=" + folder);
    assertTrue(output.startsWith("works") || output.contains("RDMA device"), output);
    assertEquals(List.of(), filesOf(folder));
  }

  @Test
  void withoutLibibverbsOnlyVerbsAreNotAvailable() throws Exception {
    program = OverVerbs.class;
    // The loader finds this one first.
    Files.writeString(folder.resolve("libibverbs.so.1"), "no library");
    environment.put("LD_LIBRARY_PATH", folder.toString());
    String output = run();
    assertTrue(output.startsWith("TRANSPORT_UNAVAILABLE: "), output);
    assertTrue(output.contains(folder.resolve("libibverbs.so.1").toString()), output);
  }
}

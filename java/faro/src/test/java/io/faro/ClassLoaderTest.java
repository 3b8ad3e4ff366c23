package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Class loaders with Faro in them, as of applications that are deployed again. */
@Timeout(120)
class ClassLoaderTest {
  private static final int LOADERS = 30;
  private static final int FILES_OF_A_COPY = 2; // the library, and the one for RDMA

  @Test
  void oneThatNobodyRefersToIsCollectedWithItsLibrary() throws Exception {
    long before = libraries();
    List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
    for (int i = 0; i < LOADERS; i++) {
      loaders.add(use());
    }
    long left = LOADERS;
    for (long end = System.nanoTime() + 60_000_000_000L; left > 0 && System.nanoTime() < end; ) {
      System.gc();
      left = loaders.stream().filter(loader -> loader.get() != null).count();
    }
    assertEquals(0, left, "loaders that stay");
    // One whose thread is just ending when it is closed stays until the loader closes another one.
    long allowed = before + FILES_OF_A_COPY;
    for (long end = System.nanoTime() + 20_000_000_000L; libraries() > allowed && System.nanoTime() < end; ) {
      System.gc();
    }
    long mapped = libraries();
    assertTrue(mapped <= allowed, () -> "libraries that stay mapped: " + mapped + ", before " + before);
  }

  // Network threads run in its library when the last one to refer to it is gone.
  @Test
  void oneWhoseSessionIsForgottenOpenIsCollectedWithItsLibrary() throws Exception {
    long before = libraries();
    WeakReference<ClassLoader> loader = forget();
    // One whose thread is just ending when it is closed stays until the loader closes another one.
    for (long end = System.nanoTime() + 60_000_000_000L; loader.get() != null && System.nanoTime() < end; ) {
      System.gc();
    }
    assertNull(loader.get(), "the loader stays");
    long allowed = before + FILES_OF_A_COPY;
    for (long end = System.nanoTime() + 20_000_000_000L; libraries() > allowed && System.nanoTime() < end; ) {
      System.gc();
    }
    assertTrue(libraries() <= allowed, "its library stays mapped");
    assertEquals(Set.of(), beans());
  }

  private static WeakReference<ClassLoader> forget() throws Exception {
    ClassLoader loader = newLoader();
    loader.loadClass(LoaderProbe.class.getName()).getMethod("openAndForget").invoke(null);
    return new WeakReference<>(loader);
  }

  // What names a bean in one copy of Faro is not unique among several.
  @Test
  void sessionsOfTwoLoadersHaveBeansOfTheirOwn() throws Exception {
    try (URLClassLoader one = newLoader();
        URLClassLoader other = newLoader()) {
      Set<ObjectName> before = beans();
      AutoCloseable first = sessionWithBeans(one);
      Set<ObjectName> ofFirst = beans();
      AutoCloseable second = sessionWithBeans(other);
      Set<ObjectName> ofBoth = beans();
      assertEquals(2 * (ofFirst.size() - before.size()), ofBoth.size() - before.size());
      first.close();
      assertEquals(ofFirst.size(), beans().size());
      second.close();
      assertEquals(before, beans());
    }
  }

  private static AutoCloseable sessionWithBeans(ClassLoader loader) throws ReflectiveOperationException {
    return (AutoCloseable) probeOf(loader).getClass().getMethod("openWithBeans").invoke(null);
  }

  private static Set<ObjectName> beans() throws Exception {
    return ManagementFactory.getPlatformMBeanServer().queryNames(new ObjectName("io.faro:type=*,*"), null);
  }

  private static WeakReference<ClassLoader> use() throws Exception {
    ClassLoader loader = newLoader();
    probeOf(loader).call();
    return new WeakReference<>(loader);
  }

  private static URLClassLoader newLoader() {
    URL[] urls =
        Stream.of(LoaderProbe.class, Session.class)
            .map(each -> each.getProtectionDomain().getCodeSource().getLocation())
            .toArray(URL[]::new);
    return new URLClassLoader(urls, ClassLoader.getPlatformClassLoader());
  }

  @SuppressWarnings("unchecked")
  private static Callable<String> probeOf(ClassLoader loader) throws ReflectiveOperationException {
    return (Callable<String>) loader.loadClass(LoaderProbe.class.getName()).getConstructor().newInstance();
  }

  // Copies of Faro's that the process has mapped.
  private static long libraries() throws Exception {
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      return maps.filter(line -> line.contains("libfaro-unpacked")).map(line -> line.split(" +")[4]).distinct().count();
    }
  }
}

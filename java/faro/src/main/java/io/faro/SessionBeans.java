package io.faro;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.DynamicMBean;
import javax.management.InstanceAlreadyExistsException;
import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Registers the counters of one session with the platform's MBean server. There is one bean for the
 * session ({@code io.faro:type=Session,session=0-1}), one for each worker
 * ({@code type=Worker,…,worker=2}) and one for each link ({@code type=Link,…,node=1}). A bean
 * has one attribute per counter, with the same name as in C++. A session is named by its node and
 * by the first number from 1 on that no other session of the process has, of whatever class loader.
 *
 * <p>The beans refer to the session by its native handle, not by the {@link Session} object, so
 * they do not keep a session that the application has dropped from being collected. Threads: any.
 */
final class SessionBeans {
  private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
  private final List<ObjectName> registered = new ArrayList<>();

  /** Registers all beans. If one cannot be registered, unregisters the others and throws. */
  SessionBeans(int node, long session) {
    SessionMetrics now = NativeMetrics.of(session);
    String of = registerSession(node, () -> NativeMetrics.of(session).counters());
    for (int i = 0; i < now.workers().size(); i++) {
      int index = i;
      register(
          "type=Worker" + of + ",worker=" + now.workers().get(i).worker(),
          () -> NativeMetrics.of(session).workers().get(index).counters());
    }
    for (LinkMetrics link : now.links()) {
      register(
          "type=Link" + of + ",node=" + link.node(),
          () -> linkTo(link.node(), NativeMetrics.of(session)));
    }
  }

  // Where nodes change not every number has a link, and one may have none any more: then nothing
  // was counted.
  private static Map<String, Long> linkTo(int node, SessionMetrics metrics) {
    return metrics.links().stream()
        .filter(link -> link.node() == node)
        .findFirst()
        .map(Counters::counters)
        .orElse(Map.of());
  }

  /** Unregisters all beans. Idempotent. */
  synchronized void close() {
    for (ObjectName name : registered) {
      try {
        server.unregisterMBean(name);
      } catch (JMException gone) {
        // Somebody else has unregistered it.
      }
    }
    registered.clear();
  }

  // Returns the part of its name that its workers and links have in theirs. The server decides
  // which number is taken: what this copy of Faro counts, a copy in another class loader counts as
  // well.
  private String registerSession(int node, Supplier<Map<String, Long>> counters) {
    for (int number = 1; ; number++) {
      String of = ",session=" + node + "-" + number;
      if (registerIfFree("type=Session" + of, counters)) {
        return of;
      }
    }
  }

  private void register(String properties, Supplier<Map<String, Long>> counters) {
    if (!registerIfFree(properties, counters)) {
      close();
      throw new FaroException(Code.SYSTEM_ERROR, "there is a bean " + properties + " already");
    }
  }

  // False: there is one of that name.
  private synchronized boolean registerIfFree(
      String properties, Supplier<Map<String, Long>> counters) {
    try {
      ObjectName name = new ObjectName("io.faro:" + properties);
      server.registerMBean(new Bean(counters), name);
      registered.add(name);
      return true;
    } catch (InstanceAlreadyExistsException taken) {
      return false;
    } catch (JMException problem) {
      close();
      throw new FaroException(Code.SYSTEM_ERROR, "no bean " + properties + ": " + problem, problem);
    }
  }

  /** A read-only MBean. */
  private record Bean(Supplier<Map<String, Long>> counters) implements DynamicMBean {
    @Override
    public Object getAttribute(String name) throws AttributeNotFoundException {
      Long value = counters.get().get(name);
      if (value == null) {
        throw new AttributeNotFoundException(name);
      }
      return value;
    }

    @Override
    public AttributeList getAttributes(String[] names) {
      AttributeList found = new AttributeList();
      var all = counters.get();
      for (String name : names) {
        if (all.containsKey(name)) {
          found.add(new Attribute(name, all.get(name)));
        }
      }
      return found;
    }

    @Override
    public void setAttribute(Attribute attribute) throws AttributeNotFoundException {
      throw new AttributeNotFoundException(attribute.getName() + " is read-only");
    }

    @Override
    public AttributeList setAttributes(AttributeList attributes) {
      return new AttributeList();
    }

    @Override
    public Object invoke(String action, Object[] parameters, String[] signature) {
      throw new UnsupportedOperationException(action);
    }

    @Override
    public MBeanInfo getMBeanInfo() {
      MBeanAttributeInfo[] attributes =
          counters.get().keySet().stream()
              .map(name -> new MBeanAttributeInfo(name, "long", name, true, false, false))
              .toArray(MBeanAttributeInfo[]::new);
      return new MBeanInfo(
          Counters.class.getName(), "Counters of Faro", attributes, null, null, null);
    }
  }
}

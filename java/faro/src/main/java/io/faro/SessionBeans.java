package io.faro;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.DynamicMBean;
import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * The counters of one session in the platform's MBean server: {@code
 * io.faro:type=Session,session=0-4294967296}, and the same with {@code type=Worker,…,worker=2} and {@code
 * type=Link,…,node=1}. An attribute for each counter, named as in C++.
 *
 * <p>Holds the session by its handle only, so that one that was forgotten can be found. Threads: any.
 */
final class SessionBeans {
  private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
  private final List<ObjectName> registered = new ArrayList<>();

  /** Registers all; if one fails, none. */
  SessionBeans(int node, long session) {
    String of = ",session=" + node + "-" + session;
    SessionMetrics now = NativeMetrics.of(session);
    register("type=Session" + of, () -> NativeMetrics.of(session));
    for (int i = 0; i < now.workers().size(); i++) {
      int index = i;
      register(
          "type=Worker" + of + ",worker=" + now.workers().get(i).worker(),
          () -> NativeMetrics.of(session).workers().get(index));
    }
    for (LinkMetrics link : now.links()) {
      register(
          "type=Link" + of + ",node=" + link.node(),
          () -> NativeMetrics.of(session).links().get(link.node()));
    }
  }

  /** Unregisters all. */
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

  private synchronized void register(String properties, Supplier<Counters> counters) {
    try {
      ObjectName name = new ObjectName("io.faro:" + properties);
      server.registerMBean(new Bean(counters), name);
      registered.add(name);
    } catch (JMException problem) {
      close();
      throw new FaroException(Code.SYSTEM_ERROR, "no bean " + properties + ": " + problem, problem);
    }
  }

  /** Read-only; public for the server. */
  private record Bean(Supplier<Counters> counters) implements DynamicMBean {
    @Override
    public Object getAttribute(String name) throws AttributeNotFoundException {
      Long value = counters.get().counters().get(name);
      if (value == null) {
        throw new AttributeNotFoundException(name);
      }
      return value;
    }

    @Override
    public AttributeList getAttributes(String[] names) {
      AttributeList found = new AttributeList();
      var all = counters.get().counters();
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
          counters.get().counters().keySet().stream()
              .map(name -> new MBeanAttributeInfo(name, "long", name, true, false, false))
              .toArray(MBeanAttributeInfo[]::new);
      return new MBeanInfo(Counters.class.getName(), "Counters of Faro", attributes, null, null, null);
    }
  }
}

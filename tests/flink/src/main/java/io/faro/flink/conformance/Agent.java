package io.faro.flink.conformance;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.Path;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.matcher.ElementMatcher;

/**
 * What a JVM that runs Flink's tests is started with: {@code -javaagent:<jar>=<netty or faro>,<one or two>,<folder>}.
 *
 * <p>With {@code faro}, Flink's default shuffle service becomes that of Faro, and a shuffle environment that a test makes by
 * itself over Netty gets Faro's connections. What a test sets itself stays. With {@code two}, a MiniCluster of one TaskManager becomes
 * one of two with half the slots each: else its exchanges would all be local. In any case what is requested of other TaskManagers is counted
 * ({@link RemoteExchanges}), in a file in the folder.
 */
public final class Agent {
  private static final String NETWORK = "org.apache.flink.runtime.io.network.";

  private Agent() {}

  /** Called by the JVM, before anything of Flink is loaded. */
  public static void premain(String arguments, Instrumentation instrumentation) throws IOException {
    String[] parts = arguments.split(",", 3);
    boolean overFaro = parts[0].equals("faro");
    RemoteExchanges.open(Path.of(parts[2]), overFaro);
    AgentBuilder builder =
        advised(
            new AgentBuilder.Default(),
            NETWORK + "netty.NettyPartitionRequestClient",
            named("requestSubpartition"),
            "NettyRequestAdvice");
    if (overFaro) {
      builder = overFaro(builder);
    }
    if (parts[1].equals("two")) {
      builder =
          advised(
              builder,
              "org.apache.flink.runtime.minicluster.MiniClusterConfiguration",
              isConstructor(),
              "TwoTaskManagersAdvice");
    }
    builder.installOn(instrumentation);
  }

  private static AgentBuilder overFaro(AgentBuilder builder) {
    AgentBuilder withDefault =
        advised(
            builder,
            "org.apache.flink.runtime.shuffle.ShuffleServiceLoader",
            named("loadShuffleServiceFactory"),
            "DefaultServiceAdvice");
    return advised(
        withDefault,
        NETWORK + "NettyShuffleServiceFactory",
        named("createNettyShuffleEnvironment")
            .and(takesArguments(9))
            .and(takesArgument(4, named(NETWORK + "ConnectionManager"))),
        "ConnectionsAdvice");
  }

  private static AgentBuilder advised(
      AgentBuilder to, String type, ElementMatcher<? super MethodDescription> method, String advice) {
    return to.type(named(type))
        .transform(
            new AgentBuilder.Transformer.ForAdvice()
                .include(Agent.class.getClassLoader())
                .advice(method, Agent.class.getPackageName() + "." + advice));
  }
}

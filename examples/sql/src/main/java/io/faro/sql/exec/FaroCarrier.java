package io.faro.sql.exec;

import io.faro.ObjectReceiver;
import io.faro.ObjectSender;
import io.faro.ObjectShuffle;
import io.faro.ObjectShuffleSpec;
import io.faro.Outcome;
import io.faro.QueryId;
import io.faro.Shuffle;
import io.faro.Wait;
import io.faro.Worker;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Faro: each exchange is a shuffle of the engine's session. */
public final class FaroCarrier implements Carrier {
  @Override
  public Shuffles open(Worker worker, QueryId query, List<ObjectShuffleSpec<Object[]>> stages) {
    return new Opened(worker, stages);
  }

  @Override
  public void close() {
    // The engine closes the session.
  }

  private static final class Opened implements Shuffles {
    private final Map<Integer, Stage> stages = new HashMap<>(); // by number

    Opened(Worker worker, List<ObjectShuffleSpec<Object[]>> specs) {
      try {
        for (ObjectShuffleSpec<Object[]> spec : specs) {
          Stage opened = new Stage(worker.openShuffle(spec));
          stages.put(opened.shuffle.spec().stage(), opened);
        }
      } catch (RuntimeException e) {
        close();
        throw e;
      }
    }

    @Override
    public RowShuffle stage(int stage) {
      return stages.get(stage);
    }

    @Override
    public void check() {
      // Any of them knows of the query's end.
      stages.values().stream().findFirst().ifPresent(stage -> stage.shuffle.checkQuery());
    }

    @Override
    public void close() {
      stages.values().forEach(stage -> stage.shuffle.close());
    }
  }

  private static final class Stage implements RowShuffle {
    private final Shuffle shuffle;
    private final ObjectSender<Object[]> sender;
    private final ObjectReceiver<Object[]> receiver;
    private final ArrayDeque<Object[]> rows = new ArrayDeque<>(); // of one frame, which is read in one go
    private final Consumer<Object[]> keep = rows::add;

    Stage(ObjectShuffle<Object[]> opened) {
      shuffle = opened.shuffle();
      sender = opened.sender();
      receiver = opened.receiver();
    }

    @Override
    public int receiverCount() {
      return shuffle.sender().receiverCount();
    }

    @Override
    public void send(int to, Object[] row) throws InterruptedException {
      checkIsSent(sender.send(to, row));
    }

    @Override
    public void finish() throws InterruptedException {
      checkIsSent(shuffle.sender().finish());
    }

    @Override
    public void stop() {
      shuffle.receiver().stop();
      rows.clear();
    }

    @Override
    public Outcome tryNext() {
      return rows.isEmpty() ? receiver.drain(keep, Wait.NONE) : Outcome.DONE;
    }

    @Override
    public Outcome next() throws InterruptedException {
      return rows.isEmpty() ? receiver.drain(keep) : Outcome.DONE;
    }

    @Override
    public Object[] get() {
      return rows.remove();
    }

    private void checkIsSent(Outcome sent) {
      if (sent != Outcome.DONE && sent != Outcome.STOPPED) {
        throw new IllegalStateException("stage " + shuffle.spec().stage() + " answers " + sent);
      }
    }
  }
}

import it.unimi.di.law.bubing.Agent;
import it.unimi.di.law.bubing.frontier.FetchingThread;

import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Set;

import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.RuntimeMBeanException;

import org.apache.http.config.Lookup;

/**
 * Drives BUbiNG as a peer: an agent that ends when nothing is left to fetch, which it doesn't by itself.
 *
 * <p>{@code java Crawl PROPERTIES}, which must say {@code startPaused=true}. The agent is watched by what
 * it shows over JMX. It empties its sieve every ten seconds at most, which a crawl of seconds would
 * wait for; so it is asked to as soon as it has nothing else to do, and if several times nothing came
 * of it, the crawl is over. Exits with 0 then, with 1 if URLs are left and none was asked for in a
 * while.
 */
public final class Crawl {
    private static final int LOOK_MS = 20;
    /** Looks without a new request until it counts as idle, so that pages can be parsed. */
    private static final int IDLE_LOOKS = 5;
    /** Times that the sieve gave nothing until the crawl is over. */
    private static final int FLUSHES = 5;
    /** Looks without a new request while URLs are queued until it is given up. */
    private static final int STUCK_LOOKS = 400;

    public static void main(String[] arguments) throws Exception {
        // This version prints the headers of every page there.
        PrintStream err = System.err;
        System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        // It's only told to other agents, and there are none.
        System.setProperty(Agent.JMX_REMOTE_PORT_SYSTEM_PROPERTY, "1");
        Thread agent = new Thread(() -> {
            try {
                Agent.main(new String[] {"-h", "127.0.0.1", "-g", "peer", "-n", "-P", arguments[0], "peer"});
            } catch (Throwable error) {
                error.printStackTrace(err);
            }
            Runtime.getRuntime().halt(1);
        });
        agent.setDaemon(true);
        agent.start();
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = find(server);
        int wanted = (int) number(server, name, "fetchingThreads");
        while (greetAsOfToday() < wanted) {
            Thread.sleep(LOOK_MS);
        }
        server.invoke(name, "resume", null, null);
        // Its own way to stop takes some seconds of sleep.
        Runtime.getRuntime().halt(watch(server, name, err));
    }

    private static int watch(MBeanServer server, ObjectName name, PrintStream err) throws Exception {
        long seen = -1;
        int idle = 0;
        int flushes = 0;
        while (true) {
            Thread.sleep(LOOK_MS);
            long requests = number(server, name, "requests");
            idle = requests == seen ? idle + 1 : 0;
            if (idle == 0) {
                flushes = 0;
                seen = requests;
            }
            if (idle < IDLE_LOOKS) {
                continue;
            }
            long queued = number(server, name, "URLsInQueues") + number(server, name, "readyURLs");
            if (queued > 0) {
                if (idle > STUCK_LOOKS) {
                    err.println(queued + " URLs left");
                    return 1;
                }
                continue;
            }
            if (requests > 0 && flushes == FLUSHES) {
                return 0;
            }
            server.invoke(name, "flush", null, null);
            flushes += 1;
            idle = 0;
        }
    }

    private static ObjectName find(MBeanServer server) throws Exception {
        while (true) {
            Set<ObjectName> names = server.queryNames(new ObjectName("it.unimi.di.law.bubing:*"), null);
            try {
                for (ObjectName name : names) {
                    number(server, name, "requests");
                    return name;
                }
            } catch (RuntimeMBeanException tooEarly) {
                // It shows itself before it has a frontier to tell of.
            }
            Thread.sleep(LOOK_MS);
        }
    }

    private static long number(MBeanServer server, ObjectName name, String attribute) throws Exception {
        return ((Number) server.getAttribute(name, attribute)).longValue();
    }

    /**
     * Takes from each fetching thread the wish to greet in the format of SSL 2, which can't be told
     * otherwise: servers of today hang up at it. Returns how many threads there are.
     */
    private static int greetAsOfToday() throws Exception {
        int threads = 0;
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread instanceof FetchingThread) {
                Object operator = field(field(field(thread, "httpClient"), "connManager"), "connectionOperator");
                Object factory = ((Lookup<?>) field(operator, "socketFactoryRegistry")).lookup("https");
                String[] protocols = (String[]) field(factory, "supportedProtocols");
                Arrays.setAll(protocols, at -> protocols[at].equals("SSLv2Hello") ? "TLSv1.2" : protocols[at]);
                threads += 1;
            }
        }
        return threads;
    }

    private static Object field(Object of, String name) throws Exception {
        for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field.get(of);
                }
            }
        }
        throw new NoSuchFieldException(name);
    }
}

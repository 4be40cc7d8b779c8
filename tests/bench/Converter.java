import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Properties;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;

/**
 * What upstream does, as a Kafka Streams application: raw JSON in, one event out, exactly once.
 *
 * Converter BOOTSTRAP FROM TO STATE COUNTS counts every record that enters it in the file COUNTS, where a killed
 * process leaves it too. SIGTERM ends it as Kafka Streams ends: the running records are committed.
 */
public class Converter {
  private static MappedByteBuffer counts;

  static class Convert extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
    private final ObjectMapper json = new ObjectMapper();

    @Override
    public void process(Record<byte[], byte[]> raw) {
      counts.putLong(0, counts.getLong(0) + 1);
      try {
        ObjectNode event = (ObjectNode) json.readTree(raw.value());
        String id = event.get("txn_id").asText();
        byte[] card = event.get("pan").asText().getBytes(StandardCharsets.UTF_8);
        event.put("card_id", HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(card)));
        event.remove("pan");
        Record<byte[], byte[]> converted = raw.withValue(json.writeValueAsBytes(event));
        converted.headers().add("ce_id", id.getBytes(StandardCharsets.UTF_8));
        context().forward(converted);
      } catch (Exception error) {
        throw new IllegalStateException(error);
      }
    }
  }

  public static void main(String[] given) throws Exception {
    counts = new RandomAccessFile(given[4], "rw").getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8);
    Properties set = new Properties();
    set.put(StreamsConfig.APPLICATION_ID_CONFIG, "streams-converter");
    set.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[0]);
    set.put(StreamsConfig.STATE_DIR_CONFIG, given[3]);
    set.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    set.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
    set.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    set.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
    set.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 2000);
    Topology topology = new Topology();
    var bytes = org.apache.kafka.common.serialization.Serdes.ByteArray();
    topology.addSource("raw", bytes.deserializer(), bytes.deserializer(), given[1]);
    topology.addProcessor("convert", Convert::new, "raw");
    topology.addSink("events", given[2], bytes.serializer(), bytes.serializer(), "convert");
    KafkaStreams streams = new KafkaStreams(topology, set);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(60))));
    streams.start();
  }
}

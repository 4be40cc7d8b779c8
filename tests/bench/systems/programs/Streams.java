import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The tasks of the benchmark as a Kafka Streams application: Streams START.json GUARANTEE.
 *
 * State is in its default store, RocksDB with a changelog topic. SIGTERM ends it as Kafka Streams ends.
 */
public class Streams {
  private static final String STORE = "state";
  private static JsonNode order;

  /** Avro behind the five bytes of a schema registry's framing. */
  static class Avro implements Serializer<GenericRecord>, Deserializer<GenericRecord> {
    private final ByteBuffer header;
    private final GenericDatumReader<GenericRecord> reader;
    private final GenericDatumWriter<GenericRecord> writer;
    private BinaryDecoder decoder;
    private BinaryEncoder encoder;

    Avro(Schema schema, int id) {
      header = ByteBuffer.allocate(5).put((byte) 0).putInt(id);
      reader = new GenericDatumReader<>(schema);
      writer = new GenericDatumWriter<>(schema);
    }

    @Override
    public GenericRecord deserialize(String topic, byte[] data) {
      try {
        decoder = DecoderFactory.get().binaryDecoder(data, 5, data.length - 5, decoder);
        return reader.read(null, decoder);
      } catch (java.io.IOException error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public byte[] serialize(String topic, GenericRecord record) {
      try {
        ByteArrayOutputStream out = new ByteArrayOutputStream(512);
        out.write(header.array());
        encoder = EncoderFactory.get().directBinaryEncoder(out, encoder);
        writer.write(record, encoder);
        encoder.flush();
        return out.toByteArray();
      } catch (java.io.IOException error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {}

    @Override
    public void close() {}
  }

  /** Makes alerts; their ids are the same after any replay. */
  static class Alerts {
    private final Schema schema = schema("alert_schema");
    private final String name = order.get("name").asText();

    GenericRecord of(GenericRecord event, String dedupKey, String reason, Map<String, String> values) {
      String card = event.get("card_id").toString();
      GenericRecord entity = new GenericData.Record(schema.getField("entity").schema());
      entity.put("type", "card");
      entity.put("id", card);
      GenericRecord evidence = new GenericData.Record(schema.getField("evidence").schema());
      evidence.put("event_ids", List.of(event.get("event_id").toString()));
      evidence.put("values", values);
      byte[] identity = (name + "/" + card + "/" + dedupKey).getBytes(StandardCharsets.UTF_8);
      GenericRecordBuilder alert = new GenericRecordBuilder(schema); // what is not set has its default
      alert.set("alert_id", UUID.nameUUIDFromBytes(identity).toString());
      alert.set("detector", name);
      alert.set("release", "1");
      alert.set("settings_digest", "");
      alert.set("entity", entity);
      alert.set("severity", "medium");
      alert.set("score", 0.5);
      alert.set("title", "Benchmark");
      alert.set("reason", reason);
      alert.set("evidence", evidence);
      alert.set("event_time", event.get("event_time"));
      alert.set("detected_at", System.currentTimeMillis() * 1000);
      alert.set("labels", Map.of());
      return alert.build();
    }
  }

  /** Emits each count of a card that is due. */
  static class Count extends Stateful<Long> {
    private final long every = order.get("every").asLong();

    @Override
    GenericRecord alertOn(String card, GenericRecord event) {
      Long before = store.get(card);
      long count = before == null ? 1 : before + 1;
      store.put(card, count);
      if (count % every != 0) return null;
      String said = String.valueOf(count);
      return alerts.of(event, said, "event " + said + " of this card", Map.of("count", said));
    }
  }

  /** Emits a card that is in another country than it was last. */
  static class Follow extends Stateful<String> {
    @Override
    GenericRecord alertOn(String card, GenericRecord event) {
      String last = store.get(card), country = event.get("country").toString();
      store.put(card, country);
      if (last == null || last.equals(country)) return null;
      String reason = "in " + country + ", and in " + last + " before";
      return alerts.of(event, event.get("event_id").toString(), reason, Map.of("country", country));
    }
  }

  abstract static class Stateful<S> implements FixedKeyProcessor<String, GenericRecord, GenericRecord> {
    final Alerts alerts = new Alerts();
    KeyValueStore<String, S> store;
    private FixedKeyProcessorContext<String, GenericRecord> context;

    abstract GenericRecord alertOn(String card, GenericRecord event);

    @Override
    public void init(FixedKeyProcessorContext<String, GenericRecord> given) {
      context = given;
      store = given.getStateStore(STORE);
    }

    @Override
    public void process(FixedKeyRecord<String, GenericRecord> record) {
      GenericRecord alert = alertOn(record.key(), record.value());
      if (alert != null) context.forward(record.withValue(alert));
    }
  }

  private static KStream<String, GenericRecord> large(KStream<String, GenericRecord> events) {
    Alerts alerts = new Alerts();
    BigDecimal limit = new BigDecimal(order.get("limit").asText());
    return events
        .filter((card, event) -> amount(event).compareTo(limit) > 0)
        .mapValues(event -> {
          String said = amount(event).setScale(2) + " " + event.get("currency");
          String reason = said + " at merchant " + event.get("merchant_id") + " is above the limit";
          return alerts.of(event, event.get("event_id").toString(), reason, Map.of("amount", said));
        });
  }

  private static BigDecimal amount(GenericRecord event) {
    ByteBuffer bytes = ((ByteBuffer) event.get("amount")).duplicate();
    byte[] unscaled = new byte[bytes.remaining()];
    bytes.get(unscaled);
    return new BigDecimal(new BigInteger(unscaled), 4);
  }

  private static KStream<String, GenericRecord> stateful(
      StreamsBuilder builder, KStream<String, GenericRecord> events, String kind) {
    boolean counts = kind.equals("aggregate");
    Serde<?> values = counts ? Serdes.Long() : Serdes.String();
    StoreBuilder<?> store = Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.String(), values);
    builder.addStateStore(store);
    FixedKeyProcessorSupplier<String, GenericRecord, GenericRecord> processor = counts ? Count::new : Follow::new;
    return events.processValues(processor, STORE);
  }

  private static Schema schema(String name) {
    return new Schema.Parser().parse(order.get(name).toString());
  }

  public static void main(String[] given) throws Exception {
    order = new ObjectMapper().readTree(new File(given[0]));
    Properties set = new Properties();
    set.put(StreamsConfig.APPLICATION_ID_CONFIG, order.get("name").asText());
    set.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, order.get("bootstrap").asText());
    set.put(StreamsConfig.STATE_DIR_CONFIG, order.get("folder").asText() + "/state");
    set.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, given[1]);
    set.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
    set.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    set.put(StreamsConfig.producerPrefix("linger.ms"), order.get("linger_ms").asInt());
    set.put(StreamsConfig.producerPrefix("acks"), "all");
    set.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    // the least that a broker takes: until then nobody, not even its own next start, gets a dead one's partitions
    set.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
    set.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 2000);
    Avro in = new Avro(schema("event_schema"), 0);
    Avro out = new Avro(schema("alert_schema"), order.get("alert_schema_id").asInt());
    StreamsBuilder builder = new StreamsBuilder();
    KStream<String, GenericRecord> events =
        builder.stream(order.get("input").asText(), Consumed.with(Serdes.String(), Serdes.serdeFrom(in, in)));
    String kind = order.get("kind").asText();
    KStream<String, GenericRecord> alerts = kind.equals("rule") ? large(events) : stateful(builder, events, kind);
    alerts.to(order.get("output").asText(), Produced.with(Serdes.String(), Serdes.serdeFrom(out, out)));
    KafkaStreams streams = new KafkaStreams(builder.build(), set);
    streams.setUncaughtExceptionHandler(error -> {
      error.printStackTrace();
      return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
    });
    Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
    streams.start();
  }
}

// Reads every notification and proves by `seq` that it missed none.
//
// java -cp "kafka-clients.jar:avro.jar:jackson-core.jar:jackson-databind.jar:jackson-annotations.jar:slf4j-api.jar" \
//     examples/ConsumeNotifications.java 127.0.0.1:9092

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

public class ConsumeNotifications {
    static final Duration QUIET = Duration.ofSeconds(10); // it ends after that; leave it out to wait for ever

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "isolation.level", "read_committed", // say so: the default also shows what a transaction took back
            "auto.offset.reset", "earliest");
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            Map<Integer, Schema> schemas = schemas(consumer);
            List<TopicPartition> places = places(consumer, "pay.notifications.v1");
            consumer.assign(places);
            consumer.seekToBeginning(places);
            Map<TopicPartition, Long> oldest = consumer.beginningOffsets(places);
            Map<Integer, Long> expected = new HashMap<>();
            ConsumerRecords<byte[], byte[]> batch;
            while (!(batch = consumer.poll(QUIET)).isEmpty()) {
                for (ConsumerRecord<byte[], byte[]> record : batch) {
                    GenericRecord told = decode(record.value(), schemas);
                    long seq = (long) told.get("seq");
                    // numbers begin with 0, unless the oldest records were deleted by age
                    boolean whole = oldest.get(new TopicPartition(record.topic(), record.partition())) == 0;
                    long next = expected.getOrDefault(record.partition(), whole ? 0 : seq);
                    if (seq != next) {
                        System.out.printf("GAP partition %d: expected seq %d, got %d%n", record.partition(), next, seq);
                    }
                    expected.put(record.partition(), seq + 1);
                    System.out.printf("%d %d %s %s %s%n", record.partition(), seq,
                        told.get("severity"), told.get("title"), told.get("case_id"));
                }
            }
        }
    }

    /** Every schema that a writer has announced, by the id that stands before each value. */
    static Map<Integer, Schema> schemas(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        List<TopicPartition> places = places(consumer, "lozenge.ctl.schemas.v1");
        consumer.assign(places);
        consumer.seekToBeginning(places);
        Map<TopicPartition, Long> ends = consumer.endOffsets(places);
        Map<Integer, Schema> found = new HashMap<>();
        while (places.stream().anyMatch(place -> consumer.position(place) < ends.get(place))) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                JsonNode told = new ObjectMapper().readTree(new String(record.value(), StandardCharsets.UTF_8));
                found.put(told.get("id").asInt(), new Schema.Parser().parse(told.get("schema").asText()));
            }
        }
        return found;
    }

    static List<TopicPartition> places(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        return consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
    }

    /** A byte 0, four bytes of the schema's id, and the Avro record. */
    static GenericRecord decode(byte[] value, Map<Integer, Schema> schemas) throws Exception {
        int id = java.nio.ByteBuffer.wrap(value, 1, 4).getInt();
        var decoder = DecoderFactory.get().binaryDecoder(value, 5, value.length - 5, null);
        return new GenericDatumReader<GenericRecord>(schemas.get(id)).read(null, decoder);
    }
}

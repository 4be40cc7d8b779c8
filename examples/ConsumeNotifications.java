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
    static final Duration QUIET = Duration.ofSeconds(10); // the program ends after that time without a record

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "isolation.level", "read_committed", // Kafka's default also returns aborted records
            "auto.offset.reset", "earliest");
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            Map<Integer, Schema> schemas = schemas(consumer);
            List<TopicPartition> partitions = partitions(consumer, "pay.notifications.v1");
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> oldest = consumer.beginningOffsets(partitions);
            Map<Integer, Long> expected = new HashMap<>();
            ConsumerRecords<byte[], byte[]> batch;
            while (!(batch = consumer.poll(QUIET)).isEmpty()) {
                for (ConsumerRecord<byte[], byte[]> record : batch) {
                    GenericRecord notification = decode(record.value(), schemas);
                    long seq = (long) notification.get("seq");
                    // the first seq is 0, unless retention has deleted the oldest records
                    boolean complete = oldest.get(new TopicPartition(record.topic(), record.partition())) == 0;
                    long next = expected.getOrDefault(record.partition(), complete ? 0 : seq);
                    if (seq != next) {
                        System.out.printf("GAP partition %d: expected seq %d, got %d%n", record.partition(), next, seq);
                    }
                    expected.put(record.partition(), seq + 1);
                    System.out.printf("%d %d %s %s %s%n", record.partition(), seq,
                        notification.get("severity"), notification.get("title"), notification.get("case_id"));
                }
            }
        }
    }

    /** Every schema that a writer has announced, by the id in front of each value. */
    static Map<Integer, Schema> schemas(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        List<TopicPartition> partitions = partitions(consumer, "lozenge.ctl.schemas.v1");
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        Map<Integer, Schema> found = new HashMap<>();
        while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                JsonNode announced = new ObjectMapper().readTree(new String(record.value(), StandardCharsets.UTF_8));
                found.put(announced.get("id").asInt(), new Schema.Parser().parse(announced.get("schema").asText()));
            }
        }
        return found;
    }

    static List<TopicPartition> partitions(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        return consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
    }

    /** A byte 0, four bytes of the schema's id, and the Avro record. */
    static GenericRecord decode(byte[] value, Map<Integer, Schema> schemas) throws Exception {
        int id = java.nio.ByteBuffer.wrap(value, 1, 4).getInt();
        var decoder = DecoderFactory.get().binaryDecoder(value, 5, value.length - 5, null);
        return new GenericDatumReader<GenericRecord>(schemas.get(id)).read(null, decoder);
    }
}

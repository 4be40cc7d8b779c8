// Reads notifications and proves by `seq` that it missed none. `pom.xml` next to it names what it needs:
//
// cd examples && mvn -q compile exec:java -Dexec.args="127.0.0.1:9092 --from-beginning"

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
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
    static final Duration QUIET = Duration.ofSeconds(10);
    static final String USAGE = """
        usage: ConsumeNotifications BROKER [--from-beginning] [--follow]

        BROKER            host and port, such as 127.0.0.1:9092
        --from-beginning  every retained record, not only new ones
        --follow          wait for further records until Ctrl-C; without it the program ends 10 s after the last one

        Exit codes: 0 done, 1 it found a gap, 2 a wrong argument.""";

    public static void main(String[] arguments) throws Exception {
        List<String> given = new ArrayList<>(List.of(arguments));
        if (given.remove("--help") || given.remove("-h")) {
            System.out.println(USAGE);
            return;
        }
        boolean fromBeginning = given.remove("--from-beginning");
        boolean follow = given.remove("--follow");
        if (given.size() != 1 || given.get(0).startsWith("-")) {
            System.err.println(USAGE);
            System.exit(2);
        }
        System.exit(consume(given.get(0), fromBeginning, follow) == 0 ? 0 : 1);
    }

    /** Prints a line for each notification and each gap; the number of gaps. */
    static int consume(String broker, boolean fromBeginning, boolean follow) throws IOException {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", broker,
            "isolation.level", "read_committed", // Kafka's default also returns aborted records
            "auto.offset.reset", "earliest");
        var bytes = new ByteArrayDeserializer();
        int gaps = 0;
        try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            Map<Integer, Schema> schemas = schemas(consumer);
            List<TopicPartition> partitions = partitions(consumer, "pay.notifications.v1");
            consumer.assign(partitions);
            if (fromBeginning) {
                consumer.seekToBeginning(partitions);
            } else {
                consumer.seekToEnd(partitions);
            }
            Map<TopicPartition, Long> oldest = consumer.beginningOffsets(partitions);
            Map<Integer, Long> expected = new HashMap<>();
            ConsumerRecords<byte[], byte[]> batch;
            while (!(batch = consumer.poll(QUIET)).isEmpty() || follow) {
                for (ConsumerRecord<byte[], byte[]> record : batch) {
                    GenericRecord notification = decode(record.value(), schemas);
                    long seq = (long) notification.get("seq");
                    // the first seq is 0, unless retention has deleted the oldest records
                    var partition = new TopicPartition(record.topic(), record.partition());
                    boolean whole = fromBeginning && oldest.get(partition) == 0;
                    long next = expected.getOrDefault(record.partition(), whole ? 0 : seq);
                    if (seq != next) {
                        gaps++;
                        System.out.printf("GAP partition %d: expected seq %d, got %d%n", record.partition(), next, seq);
                    }
                    expected.put(record.partition(), seq + 1);
                    System.out.printf("%d %d %s %s %s%n", record.partition(), seq,
                        notification.get("severity"), notification.get("title"), notification.get("case_id"));
                }
            }
        }
        return gaps;
    }

    /** Every schema that a writer has announced, by the id in front of each value. */
    static Map<Integer, Schema> schemas(KafkaConsumer<byte[], byte[]> consumer) throws IOException {
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
    static GenericRecord decode(byte[] value, Map<Integer, Schema> schemas) throws IOException {
        int id = java.nio.ByteBuffer.wrap(value, 1, 4).getInt();
        var decoder = DecoderFactory.get().binaryDecoder(value, 5, value.length - 5, null);
        return new GenericDatumReader<GenericRecord>(schemas.get(id)).read(null, decoder);
    }
}

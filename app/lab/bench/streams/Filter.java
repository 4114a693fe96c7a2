import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeParseException;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;

/**
 * The filter on Kafka Streams, without state: one processor that reads payments and writes to one of two topics.
 *
 * The schema of app/payment.ddl and the four predicates of app/rules.yml are written here by hand (`parse`, `matched`);
 * the ids of the two block lists come from the file of properties, which is the argument. Properties that begin with
 * `filter.` are this program's, all others Kafka Streams'. Payments above `max_record_bytes` are not told apart; the
 * bench sends none. The audit finds it out where it decides otherwise.
 */
public final class Filter extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
    private static final Set<String> TEXTS = Set.of("payment_id", "card_id", "currency", "country");
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private final byte[] topicId;
    private final Set<String> blockedPayments;
    private final Set<String> blockedCards;

    private Filter(Properties settings) {
        topicId = bytes(settings.getProperty("filter.topic.id"));
        blockedPayments = Set.of(settings.getProperty("filter.blocked.payment_id").split(","));
        blockedCards = Set.of(settings.getProperty("filter.blocked.card_id").split(","));
    }

    /** Decides until SIGTERM; exits with 1 when Kafka Streams has ended by itself. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        Properties settings = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(file);
        }
        Topology topology = new Topology();
        var bytesIn = new ByteArrayDeserializer();
        var bytesOut = new ByteArraySerializer();
        topology.addSource("payments", bytesIn, bytesIn, settings.getProperty("filter.topic.input"));
        topology.addProcessor("decide", () -> new Filter(settings), "payments");
        topology.addSink("flagged", settings.getProperty("filter.topic.flagged"), bytesOut, bytesOut, "decide");
        topology.addSink("rejected", settings.getProperty("filter.topic.rejected"), bytesOut, bytesOut, "decide");
        Files.writeString(Path.of(settings.getProperty("filter.plan")), topology.describe().toString());
        KafkaStreams streams = new KafkaStreams(topology, settings);
        CountDownLatch failed = new CountDownLatch(1);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            failed.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            boolean closed = streams.close(Duration.ofSeconds(10));
            Runtime.getRuntime().halt(closed && failed.getCount() > 0 ? 0 : 1); // else SIGTERM's own exit code
        }));
        streams.start();
        failed.await();
        System.exit(1);
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
        ObjectNode payment = parse(record.value());
        if (payment == null) {
            Headers headers = headers(record, "reject");
            context().forward(record.withHeaders(headers.add("reject.reason", bytes("malformed-json"))), "rejected");
            return;
        }
        ArrayNode rules = matched(payment);
        if (!rules.isEmpty()) {
            payment.set("rules", rules);
            context().forward(record.withValue(written(payment)).withHeaders(headers(record, "flag")), "flagged");
        }
    }

    /** The payment; null for what is none. */
    private static ObjectNode parse(byte[] value) {
        try {
            if (value == null || !(JSON.readTree(value) instanceof ObjectNode payment)) {
                return null;
            }
            Instant.parse(payment.path("created_at").asText());
            boolean isWhole = payment.path("amount").isNumber() && TEXTS.stream().allMatch(payment::hasNonNull);
            return isWhole ? payment : null;
        } catch (IOException | DateTimeParseException malformed) {
            return null;
        }
    }

    /** The names of the rules that match, in the order of the file; an absent field is no match. */
    private ArrayNode matched(ObjectNode payment) {
        double amount = payment.get("amount").asDouble();
        String category = payment.path("merchant_category").asText();
        int hour = Instant.parse(payment.get("created_at").asText()).atOffset(ZoneOffset.UTC).getHour();
        boolean isAbroad = payment.hasNonNull("card_country")
                && !payment.get("country").asText().equals(payment.get("card_country").asText());
        ArrayNode rules = JSON.createArrayNode();
        if (amount >= 5000) {
            rules.add("large-amount");
        }
        if (category.equals("cash_withdrawal") && isAbroad && amount >= 300) {
            rules.add("foreign-cash");
        }
        if (category.equals("gambling") && hour < 5 && amount > 200) {
            rules.add("night-gambling");
        }
        if (amount <= 0) {
            rules.add("invalid-amount");
        }
        if (blockedPayments.contains(payment.get("payment_id").asText())) {
            rules.add("isPaymentFlagged");
        }
        if (blockedCards.contains(payment.get("card_id").asText())) {
            rules.add("stolen-card");
        }
        return rules;
    }

    private Headers headers(Record<byte[], byte[]> record, String decision) {
        RecordMetadata source = context().recordMetadata().orElseThrow();
        return new RecordHeaders()
                .add("source.topic", bytes(source.topic()))
                .add("source.partition", bytes(Integer.toString(source.partition())))
                .add("source.offset", bytes(Long.toString(source.offset())))
                .add("source.timestamp", bytes(Long.toString(record.timestamp())))
                .add("source.topic_id", topicId)
                .add("decision", bytes(decision));
    }

    private static byte[] written(JsonNode payment) {
        try {
            return JSON.writeValueAsBytes(payment);
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}

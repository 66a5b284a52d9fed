// Writes one pill to Kafka as Avro with kafka-clients, without the gateway. Prints its cursor.
// The addresses come from stack.json, which `npm start` writes. To repeat a pill, give its
// time in µs since 1970, from which its id is made.
//     mvn dependency:copy-dependencies -DoutputDirectory=lib
//     java -cp 'lib/*' DirectProducer.java SYMBOL SPREAD [STACK_JSON [TIME_US]]
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

class DirectProducer {
  public static void main(String[] args) throws Exception {
    if (args.length < 2 || args.length > 4) end("Usage: java -cp 'lib/*' DirectProducer.java SYMBOL SPREAD [STACK_JSON [TIME_US]]");
    Path stack = Path.of(args.length > 2 ? args[2] : ".local/stack.json");
    long time = args.length > 3 ? Long.parseLong(args[3]) : ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    if (!Files.exists(stack)) end("No running stack: " + stack + " does not exist. Run \"npm start\", or name its stack.json.");
    String topic = System.getenv().getOrDefault("PILLS_TOPIC", "pills.v1");
    var json = new ObjectMapper();
    var addresses = json.readTree(stack.toFile());
    // The published schema (schemas/pill.avsc), and the id under which consumers find it.
    var latest = URI.create(addresses.get("registry").asText() + "/subjects/" + topic + "-value/versions/latest");
    var published = json.readTree(latest.toURL());
    Schema schema = new Schema.Parser().parse(published.get("schema").asText());
    var pill = new GenericRecordBuilder(schema) // received_at stays null: the broker's append time counts
        .set("id", "direct-" + time).set("timestamp", time)
        .set("symbol", args[0]).set("gross_spread_percent", Double.valueOf(args[1])).set("market_state", "open")
        .set("confidence", 90.0).set("source", "DirectProducer.java").build();
    var value = new ByteArrayOutputStream();
    value.write(ByteBuffer.allocate(5).put((byte) 0).putInt(published.get("id").asInt()).array()); // Confluent's frame
    var encoder = EncoderFactory.get().binaryEncoder(value, null);
    new GenericDatumWriter<>(schema).write(pill, encoder);
    encoder.flush();
    Map<String, Object> settings = Map.of("bootstrap.servers", addresses.get("kafka").asText(), "delivery.timeout.ms", 30_000, "request.timeout.ms", 10_000);
    try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new ByteArraySerializer())) { // murmur2 of the key
      var written = producer.send(new ProducerRecord<>(topic, args[0], value.toByteArray())).get();
      System.out.println(written.partition() + "-" + written.offset());
    } catch (Exception error) {
      end(error.getMessage() + ". Perhaps the pill was stored: repeat it with the same time, " + time);
    }
  }

  static void end(String message) {
    System.err.println(message);
    System.exit(1);
  }
}

// Posts one pill. A failure that may pass is repeated with the same id, so the pill counts once.
// The address comes from stack.json, which `npm start` writes; a token from INGEST_CREDENTIAL.
//
//     java PostPill.java SYMBOL SPREAD [STACK_JSON]
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Locale;
import java.util.UUID;
import java.util.regex.Pattern;

class PostPill {
  public static void main(String[] args) throws Exception {
    if (args.length < 2 || args.length > 3) end("Usage: java PostPill.java SYMBOL SPREAD [STACK_JSON]");
    double spread = Double.parseDouble(args[1]);
    Path stack = Path.of(args.length == 3 ? args[2] : ".local/stack.json");
    if (!Files.exists(stack)) {
      end("No running stack: " + stack + " does not exist. Run \"npm start\", or name its stack.json.");
    }
    var found = Pattern.compile("\"ingest\"\\s*:\\s*\"([^\"]+)\"").matcher(Files.readString(stack));
    if (!found.find()) end(stack + " names no ingest.");
    String id = UUID.randomUUID().toString();
    String body = String.format(Locale.ROOT, """
        {"id":"%s","timestamp":"%s","symbol":"%s","gross_spread_percent":%s,\
        "market_state":"open","confidence":90}""", id, Instant.now().truncatedTo(ChronoUnit.MICROS), args[0], spread);
    var request = HttpRequest.newBuilder(URI.create(found.group(1) + "/api/pillole"))
        .timeout(Duration.ofSeconds(10)).header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(body));
    String token = System.getenv("INGEST_CREDENTIAL");
    if (token != null) request.header("Authorization", "Bearer " + token);
    var client = HttpClient.newHttpClient();
    for (int attempt = 0; attempt < 8; attempt++) {
      double wait = Math.random() * Math.min(5, 0.1 * Math.pow(2, attempt));
      try {
        var answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() < 300) {
          System.out.println(answer.body());
          return;
        }
        if (answer.statusCode() != 429 && answer.statusCode() < 500) end("The pill was refused: " + answer.body());
        wait += Double.parseDouble(answer.headers().firstValue("Retry-After").orElse("0"));
      } catch (IOException error) { // unreachable, reset or too late: the pill may have been stored
      }
      Thread.sleep((long) (wait * 1_000));
    }
    end("No answer after 8 attempts. Try again later with the same id: " + id);
  }

  static void end(String message) {
    System.err.println(message);
    System.exit(1);
  }
}

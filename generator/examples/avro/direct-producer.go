// go run . SYMBOL SPREAD [STACK_JSON [TIME_US]] writes one pill to Kafka as Avro with franz-go, whose
// default is murmur2. Prints its cursor. The addresses come from stack.json, which `npm start` writes.
// To repeat a pill, give its time in µs since 1970, from which its id is made.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func require(ok bool, format string, values ...any) {
	if !ok {
		fmt.Fprintf(os.Stderr, format+"\n", values...)
		os.Exit(1)
	}
}

func main() {
	require(len(os.Args) >= 3 && len(os.Args) <= 5, "Usage: go run . SYMBOL SPREAD [STACK_JSON [TIME_US]]")
	args := append(os.Args, "", "")
	or := func(text, byDefault string) string { return map[bool]string{true: byDefault, false: text}[text == ""] }
	symbol, file, at := args[1], or(args[3], ".local/stack.json"), or(args[4], fmt.Sprint(time.Now().UnixMicro()))
	spread, noSpread := strconv.ParseFloat(args[2], 64)
	micros, noTime := strconv.ParseInt(at, 10, 64)
	require(noSpread == nil && noTime == nil, "SPREAD or TIME_US is no number: %s, %s", args[2], at)
	text, err := os.ReadFile(file)
	require(err == nil, "No running stack: %s does not exist. Run \"npm start\", or name its stack.json.", file)
	var stack struct{ Kafka, Registry string }
	json.Unmarshal(text, &stack)
	topic := or(os.Getenv("PILLS_TOPIC"), "pills.v1")
	answer, err := http.Get(stack.Registry + "/subjects/" + topic + "-value/versions/1") // schemas/pill.avsc
	require(err == nil && answer.StatusCode == 200, "The registry has no schema of %s: %v", topic, err)
	var schema struct{ Id uint32 }
	require(json.NewDecoder(answer.Body).Decode(&schema) == nil, "The registry answers no JSON.")
	value := binary.BigEndian.AppendUint32([]byte{0}, schema.Id) // Confluent's frame
	str := func(text string) { value = append(binary.AppendVarint(value, int64(len(text))), text...) }
	str("direct-" + at)
	value = binary.AppendVarint(value, micros) // timestamp-micros
	str(symbol)
	value = binary.LittleEndian.AppendUint64(value, math.Float64bits(spread))
	str("open")
	value = binary.LittleEndian.AppendUint64(value, math.Float64bits(90)) // confidence
	value = append(value, 0, 2)                                           // received_at is null: the broker's append time counts; a source follows
	str("direct-producer.go")
	value = append(value, 0) // kind is null
	client, err := kgo.NewClient(kgo.SeedBrokers(stack.Kafka), kgo.RecordDeliveryTimeout(30*time.Second))
	require(err == nil, "%s is no broker: %v", stack.Kafka, err)
	record, err := client.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Key: []byte(symbol), Value: value}).First()
	require(err == nil, "%v. Perhaps the pill was stored: repeat it with the same time, %s", err, at)
	fmt.Printf("%d-%d\n", record.Partition, record.Offset)
}

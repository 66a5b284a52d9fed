"""Writes one pill to Kafka as Avro with confluent-kafka, without the gateway. Prints its cursor.

    pip install -r requirements.txt
    python direct_producer.py SYMBOL SPREAD [STACK_JSON [TIME_US]]
The addresses come from stack.json, which `npm start` writes. To repeat a pill, give its
time in µs since 1970, from which its id is made.
"""

import json
import os
import sys
import time
from datetime import datetime, timedelta, timezone

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

if not 3 <= len(sys.argv) <= 5:
    sys.exit("Usage: python direct_producer.py SYMBOL SPREAD [STACK_JSON [TIME_US]]")
symbol, spread = sys.argv[1], float(sys.argv[2])
stack = sys.argv[3] if len(sys.argv) > 3 else ".local/stack.json"
time_us = int(sys.argv[4]) if len(sys.argv) > 4 else time.time_ns() // 1000
if not os.path.exists(stack):
    sys.exit(f'No running stack: {stack} does not exist. Run "npm start", or name its stack.json.')
with open(stack, encoding="utf-8") as file:
    addresses = json.load(file)
topic = os.environ.get("PILLS_TOPIC", "pills.v1")

registry = SchemaRegistryClient({"url": addresses["registry"]})
# The published schema (schemas/pill.avsc). Registering another text, as this serializer does by
# default, would create a new version of the contract by accident.
serialize = AvroSerializer(registry, conf={"auto.register.schemas": False, "use.latest.version": True})
pill = {
    "id": f"direct-{time_us}",
    "timestamp": datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=time_us),
    "symbol": symbol,
    "gross_spread_percent": spread,
    "market_state": "open",
    "confidence": 90,
    "source": "direct_producer.py",  # received_at stays null: the broker's append time counts
}


def report(error, message):
    if error is not None:
        sys.exit(f"{error}. Perhaps the pill was stored: repeat it with the same time, {time_us}")
    print(f"{message.partition()}-{message.offset()}")


# Java's and kafkajs's hash of the key; librdkafka's own is another, and its pills are rejected.
settings = {"bootstrap.servers": addresses["kafka"], "acks": "all", "partitioner": "murmur2_random"}
producer = Producer(settings)
value = serialize(pill, SerializationContext(topic, MessageField.VALUE))
producer.produce(topic, key=symbol, value=value, on_delivery=report)
if producer.flush(30) > 0:
    sys.exit(f"Not acknowledged within 30 s: repeat the pill with the same time, {time_us}")

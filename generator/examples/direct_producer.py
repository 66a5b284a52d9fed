"""Writes one pill to Kafka as Avro with confluent-kafka, without the gateway. Prints its cursor.

    pip install -r requirements.txt
    python direct_producer.py --brokers 127.0.0.1:9092 --registry http://…/apis/ccompat/v7
"""
import argparse
import os
import time
from datetime import datetime, timezone

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

args = argparse.ArgumentParser()
args.add_argument("--brokers", default=os.environ.get("KAFKA_BROKERS", "127.0.0.1:9092"))
args.add_argument("--registry", default=os.environ.get("SCHEMA_REGISTRY_URL", ""))
args.add_argument("--topic", default="pills.v1")
args.add_argument("--id", default=f"direct-{time.time_ns()}")
args.add_argument("--symbol", default="7203.T")
args.add_argument("--spread", type=float, default=0.125)
args.add_argument("--state", default="open")
args.add_argument("--confidence", type=float, default=0.9)
args.add_argument("--default-partitioner", action="store_true",
                  help="do NOT use: most of these pills are rejected as wrong_partition")
flags = args.parse_args()

settings = {"bootstrap.servers": flags.brokers, "acks": "all"}
if not flags.default_partitioner:
    settings["partitioner"] = "murmur2_random"  # as in Java and kafkajs; librdkafka's own is CRC32
producer = Producer(settings)
registry = SchemaRegistryClient({"url": flags.registry})
# The published schema (schemas/pill.avsc). Registering another text, as this serializer does by
# default, would create a new version of the contract by accident.
serialize = AvroSerializer(registry, conf={"auto.register.schemas": False, "use.latest.version": True})
pill = {
    "id": flags.id,
    "timestamp": datetime.now(timezone.utc),  # timestamp-micros
    "symbol": flags.symbol,
    "gross_spread_percent": flags.spread,
    "market_state": flags.state,
    "confidence": flags.confidence,
    "source": "direct_producer.py",
}


def report(error, message):
    if error is not None:
        raise SystemExit(f"not stored: {error}")
    print(f"{message.partition()}-{message.offset()}")


value = serialize(pill, SerializationContext(flags.topic, MessageField.VALUE))
producer.produce(flags.topic, key=flags.symbol, value=value, on_delivery=report)
if producer.flush(10) > 0:
    raise SystemExit("not acknowledged within 10 s; the same id may be sent again")

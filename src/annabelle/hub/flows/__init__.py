"""The durable flows of the hub: what is begun here is finished, also by the next process."""

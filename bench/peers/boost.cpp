// SPDX-License-Identifier: MIT
/*
 * Boost.Interprocess. BOOST_QUEUE: message_queue, one for each subscriber, which copies twice.
 * Otherwise managed shared memory: slots with counts and a queue for each subscriber, under one
 * interprocess_mutex with an interprocess_condition, as its documentation builds things.
 */
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/interprocess/managed_shared_memory.hpp>
#include <boost/interprocess/sync/interprocess_condition.hpp>
#include <boost/interprocess/sync/interprocess_mutex.hpp>
#include <boost/interprocess/sync/scoped_lock.hpp>
#include <boost/version.hpp>
#include <memory>
#include <string>
#include <vector>

#include "peer.h"

namespace ipc = boost::interprocess;

#define MOST		128
#define SUBSCRIBERS	32

static peer_shape shape;

static std::string name_of(unsigned int channel, unsigned int number)
{
	return std::string(shape.name) + "." + std::to_string(channel) + "." +
	       std::to_string(number);
}

extern "C" {
extern const char *const peer_version = "Boost " BOOST_LIB_VERSION;

#ifdef BOOST_QUEUE
extern const char *const peer_name = "boost-queue";
extern const bool peer_shares = false;
extern const unsigned int peer_most_loans = 1;

static std::vector<std::unique_ptr<ipc::message_queue>> out;
static std::unique_ptr<ipc::message_queue> in;
static std::vector<char> to_send, received;

void peer_setup(const struct peer_shape *wanted)
{
	unsigned int room = wanted->bytes > (16 << 20) ? 1 : 4;

	shape = *wanted;
	for (unsigned int c = 0; c < shape.channels; c++)
		for (unsigned int n = 0; n < shape.subscribers; n++)
			ipc::message_queue(ipc::create_only, name_of(c, n).c_str(), room,
					   shape.bytes);
}

void peer_cleanup(void)
{
	for (unsigned int c = 0; c < shape.channels; c++)
		for (unsigned int n = 0; n < shape.subscribers; n++)
			ipc::message_queue::remove(name_of(c, n).c_str());
}

void peer_publish(unsigned int channel)
{
	for (unsigned int n = 0; n < shape.subscribers; n++)
		out.emplace_back(new ipc::message_queue(ipc::open_only,
							name_of(channel, n).c_str()));
	to_send.resize(shape.bytes);
}

void peer_follow(unsigned int channel, unsigned int number)
{
	in.reset(new ipc::message_queue(ipc::open_only, name_of(channel, number).c_str()));
	received.resize(shape.bytes);
}

void peer_leave(void)
{
}

void *peer_loan(void)
{
	return to_send.data();
}

void peer_send(void *data)
{
	for (auto &queue : out)
		queue->send(data, shape.bytes, 0);
}

const void *peer_receive(bool sleep)
{
	ipc::message_queue::size_type size;
	unsigned int priority;

	if (sleep)
		in->receive(received.data(), received.size(), size, priority);
	else if (!in->try_receive(received.data(), received.size(), size, priority))
		return NULL;
	return received.data();
}

void peer_done(const void *data)
{
}

#else
extern const char *const peer_name = "boost-memory";
extern const bool peer_shares = true;
extern const unsigned int peer_most_loans = MOST;

struct channel {
	ipc::interprocess_mutex mutex;
	ipc::interprocess_condition published;
	unsigned int count[MOST] = {};
	ipc::managed_shared_memory::handle_t data[MOST] = {};
	unsigned int tail[SUBSCRIBERS] = {};
	unsigned int queue[SUBSCRIBERS][MOST] = {};
};
typedef ipc::scoped_lock<ipc::interprocess_mutex> locked;

/* One end of a channel: its memory, and where the slots are in this process. */
struct end {
	std::unique_ptr<ipc::managed_shared_memory> memory;
	struct channel *channel;
	char *slot[MOST];

	void open(unsigned int number)
	{
		memory.reset(new ipc::managed_shared_memory(ipc::open_only,
							    name_of(number, 0).c_str()));
		channel = memory->find<struct channel>("channel").first;
		for (unsigned int n = 0; n < shape.buffers; n++)
			slot[n] = (char *)memory->get_address_from_handle(channel->data[n]);
	}
	unsigned int slot_of(const void *data)
	{
		unsigned int n = 0;

		while (slot[n] != data)
			n++;
		return n;
	}
};

static struct end own, theirs;
static unsigned int me, head;

void peer_setup(const struct peer_shape *wanted)
{
	shape = *wanted;
	for (unsigned int c = 0; c < shape.channels; c++) {
		ipc::managed_shared_memory memory(ipc::create_only, name_of(c, 0).c_str(),
			shape.buffers * (shape.bytes + 256) + sizeof(struct channel) + 65536);
		struct channel *channel = memory.construct<struct channel>("channel")();

		for (unsigned int n = 0; n < shape.buffers; n++)
			channel->data[n] = memory.get_handle_from_address(
				memory.allocate_aligned(shape.bytes, 64));
	}
}

void peer_cleanup(void)
{
	for (unsigned int c = 0; c < shape.channels; c++)
		ipc::shared_memory_object::remove(name_of(c, 0).c_str());
}

void peer_publish(unsigned int channel)
{
	own.open(channel);
}

void peer_follow(unsigned int channel, unsigned int number)
{
	theirs.open(channel);
	me = number;
	head = theirs.channel->tail[me];
}

void peer_leave(void)
{
}

void *peer_loan(void)
{
	locked lock(own.channel->mutex);

	for (unsigned int n = 0; n < shape.buffers; n++)
		if (!own.channel->count[n]) {
			own.channel->count[n] = 1;
			return own.slot[n];
		}
	return NULL;
}

void peer_send(void *data)
{
	struct channel *channel = own.channel;
	unsigned int slot = own.slot_of(data);
	{
		locked lock(channel->mutex);

		channel->count[slot] = shape.subscribers;
		for (unsigned int n = 0; n < shape.subscribers; n++)
			channel->queue[n][channel->tail[n]++ % MOST] = slot;
	}
	channel->published.notify_all();
}

const void *peer_receive(bool sleep)
{
	struct channel *channel = theirs.channel;
	locked lock(channel->mutex);

	while (channel->tail[me] == head) {
		if (!sleep)
			return NULL;
		channel->published.wait(lock);
	}
	return theirs.slot[channel->queue[me][head++ % MOST]];
}

void peer_done(const void *data)
{
	locked lock(theirs.channel->mutex);

	theirs.channel->count[theirs.slot_of(data)]--;
}
#endif
}

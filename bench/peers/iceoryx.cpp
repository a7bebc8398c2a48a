// SPDX-License-Identifier: MIT
/*
 * Eclipse iceoryx: a RouDi of our own configuration runs beside each measurement, with as many
 * chunks of the size as are wanted. Its monitoring of dead processes is on, as it is by default.
 */
#include <iceoryx_posh/iceoryx_posh_types.hpp>
#include <iceoryx_posh/popo/untyped_publisher.hpp>
#include <iceoryx_posh/popo/untyped_subscriber.hpp>
#include <iceoryx_posh/popo/wait_set.hpp>
#include <iceoryx_posh/roudi/iceoryx_roudi_app.hpp>
#include <iceoryx_posh/roudi/roudi_cmd_line_parser.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>

#include <memory>
#include <string>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

extern "C" {
extern const char *const peer_name = "iceoryx";
extern const char *const peer_version = "iceoryx " PEER_ICEORYX;
extern const bool peer_shares = true;
extern const unsigned int peer_most_loans = 8;	/* iceoryx's own limit of a publisher */

static peer_shape shape;
static pid_t roudi;
static std::unique_ptr<iox::popo::UntypedPublisher> out;
static std::unique_ptr<iox::popo::UntypedSubscriber> in;
static std::unique_ptr<iox::popo::WaitSet<>> waiting;

static void run_roudi(void)
{
	iox::config::CmdLineArgs_t args;
	iox::RouDiConfig_t config;
	iox::mepoo::MePooConfig chunks;
	auto group = iox::posix::PosixGroup::getGroupOfCurrentProcess();

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(2, 1);	/* it says there when it is ready */
	/* Each channel has its publisher's chunks; a chunk has a header. */
	chunks.addMemPool({ uint32_t(shape.bytes), shape.buffers * shape.channels });
	config.m_sharedMemorySegments.push_back({ group.getName(), group.getName(), chunks });
	iox::roudi::IceOryxRouDiApp app(args, config);
	_exit(app.run());
}

void peer_setup(const struct peer_shape *wanted)
{
	shape = *wanted;
	roudi = fork();
	if (roudi < 0)
		peer_die("fork");
	if (!roudi)
		run_roudi();
}

void peer_cleanup(void)
{
	int status;

	kill(roudi, SIGTERM);
	waitpid(roudi, &status, 0);
}

/* The runtime waits until RouDi is there. */
static void join(void)
{
	static bool joined;
	std::string name = "peer-" + std::to_string(getpid());

	if (!joined)
		iox::runtime::PoshRuntime::initRuntime(
			iox::RuntimeName_t(iox::cxx::TruncateToCapacity, name));
	joined = true;
}

static iox::capro::ServiceDescription service(unsigned int channel)
{
	return { "peer", "channel", iox::capro::IdString_t(iox::cxx::TruncateToCapacity,
							   std::to_string(channel)) };
}

void peer_publish(unsigned int channel)
{
	join();
	out.reset(new iox::popo::UntypedPublisher(service(channel)));
}

void peer_follow(unsigned int channel, unsigned int number)
{
	iox::popo::SubscriberOptions options;

	join();
	options.queueCapacity = 4;
	in.reset(new iox::popo::UntypedSubscriber(service(channel), options));
	while (in->getSubscriptionState() != iox::SubscribeState::SUBSCRIBED)
		usleep(1000);	/* RouDi connects the two; there is nothing to wait on */
	waiting.reset(new iox::popo::WaitSet<>);
	waiting->attachState(*in, iox::popo::SubscriberState::HAS_DATA)
		.or_else([](auto &) { peer_die("WaitSet"); });
}

void peer_leave(void)
{
	waiting.reset();
	in.reset();
	out.reset();
}

void *peer_loan(void)
{
	auto loan = out->loan(shape.bytes);

	return loan.has_error() ? NULL : loan.value();
}

void peer_send(void *data)
{
	out->publish(data);
}

const void *peer_receive(bool sleep)
{
	for (;;) {
		auto taken = in->take();

		if (!taken.has_error())
			return taken.value();
		if (!sleep)
			return NULL;
		waiting->wait();
	}
}

void peer_done(const void *data)
{
	in->release(data);
}
}

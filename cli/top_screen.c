// SPDX-License-Identifier: MIT
/*
 * The terminal of xmem top. A second thread looks at the host, because an answer may take long: the
 * host may be stopped. It also evicts. The first thread has the view and the terminal.
 */
#include "cli/top.h"

#ifndef CLI_CURSES

int top_screen(const char *pool, uint64_t interval)
{
	return cli_fail("top: this xmem was built without ncurses, so it has only --once and "
			"--json: install libncurses-dev and build it again");
}

#else

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/look.h"

#define SLOW_SECONDS	3		/* without an answer, until the view says so */

static struct {
	pthread_mutex_t lock;		/* the fields from here to news */
	pthread_cond_t wanted;		/* there is a client to evict */
	json_t *sample;			/* that the view has not taken yet, or NULL */
	struct top_view evict;		/* evict.evict: -1: nobody */
	char answer[256];		/* about the eviction; empty: none */
	int news[2];			/* a pipe: a byte when there is a sample or an answer */
	uint64_t interval;
} host = { .lock = PTHREAD_MUTEX_INITIALIZER, .evict.evict = -1 };

/* ---- the thread that looks ---- */

/* End the client, and put into @answer what has become of it. */
static void evict(const struct top_view *view, char *answer, size_t bytes)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_EXISTING, .label = "xmem",
	};
	struct xmem_host_info info = { .size = sizeof(info) };
	struct xmem_error why = XMEM_INIT(why);
	struct xmem_pool *pool = NULL;
	int err = xmem_host_query(&info);

	if (!err)
		pool = xmem_pool_open(view->name, &options);
	err = !pool ? -1 : xmem_pool_evict(pool, view->evict, view->incarnation);
	xmem_peek_last_error(&why);
	if (pool)
		xmem_pool_close(pool);
	if (err)
		snprintf(answer, bytes, "%s", why.message);
	else
		snprintf(answer, bytes, "Client %" JSON_INTEGER_FORMAT " has been evicted.",
			 view->evict);
}

/* Wait for the next look, or for a client to evict. Under the lock. */
static void wait_for_work(void)
{
	struct timespec until;
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &until);
	ns = until.tv_nsec + host.interval;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	while (host.evict.evict < 0 &&
	       pthread_cond_timedwait(&host.wanted, &host.lock, &until) != ETIMEDOUT)
		;
}

static void *look_again_and_again(void *unused)
{
	json_t *before = NULL, *sample;
	struct top_view asked;
	char answer[256];

	for (;;) {
		sample = look(before);
		json_decref(before);
		before = json_deep_copy(sample);	/* the other thread gets its own */
		pthread_mutex_lock(&host.lock);
		json_decref(host.sample);
		host.sample = sample;
		if (write(host.news[1], "", 1) < 0 && errno != EAGAIN)
			cli_no_memory();
		wait_for_work();
		asked = host.evict;
		host.evict.evict = -1;
		pthread_mutex_unlock(&host.lock);
		if (asked.evict < 0)
			continue;
		evict(&asked, answer, sizeof(answer));
		pthread_mutex_lock(&host.lock);
		memcpy(host.answer, answer, sizeof(answer));
		pthread_mutex_unlock(&host.lock);
	}
	return NULL;
}

/* ---- the terminal ---- */

static int key_of(int key)
{
	switch (key) {
	case KEY_UP:		return TOP_UP;
	case KEY_DOWN:		return TOP_DOWN;
	case KEY_PPAGE:		return TOP_PAGE_UP;
	case KEY_NPAGE:		return TOP_PAGE_DOWN;
	case KEY_HOME:		return TOP_HOME;
	case KEY_END:		return TOP_END;
	case KEY_RIGHT: case KEY_ENTER: case '\n': case '\r':
				return TOP_ENTER;
	case KEY_LEFT:		return TOP_BACK;
	case KEY_BACKSPACE: case 127: case '\b':
				return TOP_ERASE;
	case 27:		return TOP_ESCAPE;
	}
	return key;
}

static void draw(struct top_view *view, const json_t *sample)
{
	int titles, selected, y;
	char *text, *line, *end;

	getmaxyx(stdscr, view->rows, view->columns);
	text = top_draw(view, sample, &titles, &selected);
	erase();
	for (y = 0, line = text; (end = strchr(line, '\n')); y++, line = end + 1) {
		attrset(y == titles ? A_BOLD : y == selected ? A_REVERSE : A_NORMAL);
		mvaddnstr(y, 0, line, end - line);
		if (y == selected)
			hline(' ', view->columns);
	}
	refresh();
	free(text);
}

/* Take what the other thread has found. The view stays as it is while it is paused. */
static void take_news(struct top_view *view, json_t **sample, const char *pool)
{
	char bytes[64];

	while (read(host.news[0], bytes, sizeof(bytes)) > 0)
		;
	pthread_mutex_lock(&host.lock);
	if (*host.answer) {
		view->evict = -1;
		memcpy(view->message, host.answer, sizeof(view->message));
		*host.answer = '\0';
	}
	if (host.sample && !view->paused) {
		bool first = !*sample;
		json_t *row;

		json_decref(*sample);
		*sample = host.sample;
		host.sample = NULL;
		if (!strncmp(view->message, "The host", 8))
			*view->message = '\0';
		row = first && pool ? look_named(*sample, pool) : NULL;
		if (row)
			top_show(view, row);
		else if (first && pool)
			snprintf(view->message, sizeof(view->message), "There is no pool %.100s.",
				 pool);
		top_key(view, *sample, TOP_SAMPLE);
	}
	pthread_mutex_unlock(&host.lock);
}

static void ask_to_evict(struct top_view *view)
{
	pthread_mutex_lock(&host.lock);
	host.evict = *view;
	pthread_cond_signal(&host.wanted);
	pthread_mutex_unlock(&host.lock);
	view->evict = -1;
	*view->message = '\0';
}

/* Until the user ends the view. */
static void show(const char *pool)
{
	struct pollfd ends[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN }, { .fd = host.news[0], .events = POLLIN },
	};
	int quiet = 0, key = ERR, wait = SLOW_SECONDS * 1000 + host.interval / 1000000;
	enum top_action action = TOP_NOTHING;
	struct top_view view;
	json_t *sample = NULL;

	top_begin(&view);
	while (action != TOP_QUIT) {
		draw(&view, sample);
		quiet = poll(ends, 2, wait) == 0;
		if (quiet && !view.paused && view.evict < 0)
			snprintf(view.message, sizeof(view.message),
				 "The host does not answer.");
		if (ends[1].revents)
			take_news(&view, &sample, pool);
		if (ends[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			break;		/* the terminal has gone */
		while (action != TOP_QUIT && (key = getch()) != ERR) {
			if (key != KEY_RESIZE)
				action = top_key(&view, sample, key_of(key));
			if (action == TOP_EVICT)
				ask_to_evict(&view);
		}
	}
	json_decref(sample);
}

int top_screen(const char *pool, uint64_t interval)
{
	pthread_t thread;
	bool known;
	int err;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return cli_fail("top: there is no terminal: use --once or --json");
	host.interval = interval;
	if (pipe2(host.news, O_NONBLOCK | O_CLOEXEC))
		return cli_fail("top: pipe: %s", strerror(errno));
	known = newterm(NULL, stdout, stdin);
	if (known && !tigetstr("cup"))		/* it cannot place its cursor */
		endwin(), known = false;
	if (!known)
		return cli_fail("top: this terminal is not known, or is too simple: set TERM, or "
				"use --once");
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	err = pthread_create(&thread, NULL, look_again_and_again, NULL);
	if (!err)
		show(pool);
	endwin();
	return err ? cli_fail("top: pthread_create: %s", strerror(err)) : CLI_DONE;
}

#endif

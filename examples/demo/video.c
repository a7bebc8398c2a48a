/* SPDX-License-Identifier: MIT */
/*
 * ffprobe and ffmpeg as child processes; see video.h. ffmpeg writes YUV4MPEG2:
 * a line with the size of the pictures as they will really come (turned, if the
 * video says so), then for each frame a line "FRAME" and the three planes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "video.h"

#define PIPE_BYTES	(1 << 20)
#define LINE_BYTES	512

__attribute__((format(printf, 2, 3)))
static bool fail(char why[VIDEO_TEXT], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, VIDEO_TEXT, format, arguments);
	va_end(arguments);
	return false;
}

/* ---- child processes ---- */

/* In the child: the program, with @out and @complaints; dies with its parent. */
static void become(char *const *arguments, int out, int complaints, pid_t parent)
{
	int nothing = open("/dev/null", O_RDONLY);

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	if (dup2(nothing, 0) == 0 && dup2(out, 1) == 1 && dup2(complaints, 2) == 2)
		execvp(arguments[0], arguments);
	dprintf(complaints, "cannot start %s: %s\n", arguments[0], strerror(errno));
	_exit(127);
}

static bool start(struct video *video, char *const *arguments, char why[VIDEO_TEXT])
{
	pid_t parent = getpid();
	int ends[2];

	*video = (struct video){ .pid = -1, .pipe = -1 };
	video->complaints = memfd_create("complaints", MFD_CLOEXEC);
	if (video->complaints < 0 || pipe2(ends, O_CLOEXEC)) {
		fail(why, "cannot start %s: %s", arguments[0], strerror(errno));
		goto err_close;
	}
	fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);	/* only faster: a smaller pipe works too */
	video->pid = fork();
	if (!video->pid)
		become(arguments, ends[1], video->complaints, parent);
	close(ends[1]);
	video->pipe = ends[0];
	if (video->pid > 0)
		return true;
	fail(why, "cannot start %s: %s", arguments[0], strerror(errno));
	close(video->pipe);
err_close:
	if (video->complaints >= 0)
		close(video->complaints);
	video->pipe = video->complaints = -1;
	return false;
}

/* Wait until the child ends by itself. true: its status says that all was well. */
static bool ended_well(struct video *video)
{
	int status;
	pid_t got;

	do
		got = waitpid(video->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	video->pid = -1;
	return got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The first line of its complaints, without addresses and the file's name. */
static void first_complaint(struct video *video, const char *otherwise, char why[VIDEO_TEXT])
{
	char text[LINE_BYTES + 1];
	ssize_t got = pread(video->complaints, text, LINE_BYTES, 0);
	char *line = text, *end;

	text[got > 0 ? got : 0] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (*line == '[') {
		end = strstr(line, "] ");
		line = end ? end + 2 : line;
	}
	if (!strncmp(line, "file:", 5)) {
		for (end = strstr(line, ": "); end; end = strstr(line, ": "))
			line = end + 2;
	}
	fail(why, "%s", *line ? line : otherwise);
}

void video_close(struct video *video)
{
	if (video->pid > 0) {
		kill(video->pid, SIGKILL);
		ended_well(video);
	}
	if (video->pipe >= 0)
		close(video->pipe);
	if (video->complaints >= 0)
		close(video->complaints);
	*video = (struct video){ .pid = -1, .pipe = -1, .complaints = -1 };
}

static bool read_all(int file, void *data, size_t bytes)
{
	char *at = data;
	ssize_t got;

	while (bytes) {
		got = read(file, at, bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		bytes -= (size_t)got;
	}
	return true;
}

/* One line without its end; false: the pipe ended, or the line is too long. */
static bool read_line(int file, char line[LINE_BYTES])
{
	size_t length;

	for (length = 0; length < LINE_BYTES - 1; length++) {
		if (!read_all(file, line + length, 1))
			return false;
		if (line[length] == '\n') {
			line[length] = '\0';
			return true;
		}
	}
	return false;
}

/* ---- is it a video? ---- */

/* The answers of ffprobe about a file. */
struct findings {
	char format[64];
	bool pictures;			/* there is a stream of them */
	uint64_t frames;
	double seconds;
	double rate;			/* frames per second */
};

static void take_finding(struct findings *findings, const char *line)
{
	double above = 0, below = 0;

	if (!strncmp(line, "codec_type=video", 16))
		findings->pictures = true;
	else if (sscanf(line, "avg_frame_rate=%lf/%lf", &above, &below) == 2)
		findings->rate = below > 0 ? above / below : 0;
	else if (sscanf(line, "format_name=%63s", findings->format) == 1)
		return;
	else if (!strncmp(line, "nb_frames=", 10))
		findings->frames = strtoull(line + 10, NULL, 10);
	else if (!strncmp(line, "duration=", 9))
		findings->seconds = strtod(line + 9, NULL);
}

/* ffprobe takes pictures and texts for videos of one frame: refuse them. */
static bool one_picture(const char *format)
{
	size_t length = strlen(format);

	return (length > 5 && !strcmp(format + length - 5, "_pipe")) || !strcmp(format, "image2") ||
	       !strcmp(format, "ico") || !strcmp(format, "tty");
}

/* Checks that need no ffprobe, or for which its message is bad. */
static bool usable_file(const char *path, char why[VIDEO_TEXT])
{
	struct stat status;

	if (stat(path, &status))
		return fail(why, "%s", strerror(errno));
	if (!S_ISREG(status.st_mode))
		return fail(why, S_ISDIR(status.st_mode) ? "it is a folder" :
			    "it is not a regular file");
	if (!status.st_size)
		return fail(why, "the file is empty");
	if (access(path, R_OK))
		return fail(why, "%s", strerror(errno));
	return true;
}

bool video_probe(const char *path, uint64_t *ret_frames, char why[VIDEO_TEXT])
{
	char name[4200], line[LINE_BYTES], complaint[VIDEO_TEXT];
	struct findings findings = { .format = "" };
	struct video probe;
	bool well;

	if (!usable_file(path, why))
		return false;
	snprintf(name, sizeof(name), "file:%s", path);
	if (!start(&probe, (char *[]){ "ffprobe", "-v", "error", "-protocol_whitelist", "file",
				       "-select_streams", "V:0",
				       "-show_entries", "format=format_name,duration:"
				       "stream=codec_type,avg_frame_rate,nb_frames",
				       "-of", "default=noprint_wrappers=1", name, NULL }, why))
		return false;
	while (read_line(probe.pipe, line))
		take_finding(&findings, line);
	well = ended_well(&probe);
	first_complaint(&probe, "ffprobe cannot read it", complaint);
	video_close(&probe);
	if (!well)
		return fail(why, "not a video (%s)", complaint);
	if (!findings.pictures)
		return fail(why, "there is no video in it (%s)", findings.format);
	if (one_picture(findings.format))
		return fail(why, "not a video (%s)", findings.format);
	*ret_frames = findings.frames;
	if (!findings.frames && findings.seconds > 0 && findings.seconds * findings.rate < 1e9)
		*ret_frames = (uint64_t)(findings.seconds * findings.rate);
	return true;
}

/* ---- decoding ---- */

static bool broken(struct video *video, char why[VIDEO_TEXT])
{
	char complaint[VIDEO_TEXT];

	if (video->pid > 0)
		ended_well(video);
	first_complaint(video, "ffmpeg stopped early", complaint);
	return fail(why, "cannot be decoded: %.120s", complaint);
}

static bool read_header(struct video *video, char why[VIDEO_TEXT])
{
	char line[LINE_BYTES], *word, *rest = line;

	if (!read_line(video->pipe, line))
		return broken(video, why);
	if (strncmp(line, "YUV4MPEG2 ", 10))
		return fail(why, "ffmpeg does not write YUV4MPEG2");
	while ((word = strsep(&rest, " "))) {
		if (*word == 'W')
			video->width = atoi(word + 1);
		else if (*word == 'H')
			video->height = atoi(word + 1);
		else if (*word == 'C' && strncmp(word, "C420", 4))
			return fail(why, "ffmpeg writes %s, not YUV 4:2:0", word);
	}
	return true;
}

bool video_open(struct video *video, const char *path, uint64_t keep, uint64_t times,
		char why[VIDEO_TEXT])
{
	char name[4200], filter[64] = "null";

	snprintf(name, sizeof(name), "file:%s", path);
	if (keep)
		snprintf(filter, sizeof(filter), "loop=loop=%" PRIu64 ":size=%" PRIu64, times - 1,
			 keep);
	if (!start(video, (char *[]){ "ffmpeg", "-nostdin", "-v", "error",
				      "-protocol_whitelist", "file", "-i", name,
				      "-map", "0:V:0", "-vf", filter, "-vsync", "passthrough",
				      "-pix_fmt", "yuv420p",
				      "-f", "yuv4mpegpipe", "pipe:1", NULL }, why))
		return false;
	if (read_header(video, why))
		return true;
	video_close(video);
	return false;
}

int video_next(struct video *video, char why[VIDEO_TEXT])
{
	char line[LINE_BYTES];

	if (read_line(video->pipe, line)) {
		if (!strncmp(line, "FRAME", 5))
			return 1;
		fail(why, "ffmpeg does not write YUV4MPEG2");
		return -1;
	}
	if (ended_well(video))
		return 0;
	broken(video, why);
	return -1;
}

bool video_read(struct video *video, void *data, size_t bytes, char why[VIDEO_TEXT])
{
	return read_all(video->pipe, data, bytes) || broken(video, why);
}

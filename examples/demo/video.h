/* SPDX-License-Identifier: MIT */
/*
 * Videos, by ffprobe and ffmpeg as child processes. Both get the name as
 * "file:NAME", so that no name is taken for an option or an address, and are
 * strict: a damaged video is an error, not a picture with holes.
 */
#ifndef DEMO_VIDEO_H
#define DEMO_VIDEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VIDEO_TEXT	160

/*
 * Is it a video? true: *ret_frames is about how many frames it has, 0 if that is not known. false:
 * @why says why not, without the name.
 */
bool video_probe(const char *path, uint64_t *ret_frames, char why[VIDEO_TEXT]);

/* A running ffmpeg that writes decoded frames into a pipe. */
struct video {
	pid_t pid;
	int pipe;
	int complaints;			/* a memory file with its standard error */
	int width;
	int height;
};

/*
 * Start decoding, and read until the size of the pictures is known. @keep: if not 0, ffmpeg keeps
 * the video's frames, which are so many, and repeats them @times times.
 */
bool video_open(struct video *video, const char *path, uint64_t keep, uint64_t times,
		char why[VIDEO_TEXT]);

/* Is there another frame? 1: yes, read it. 0: the video is over, without any error. -1: @why. */
int video_next(struct video *video, char why[VIDEO_TEXT]);

/* Some bytes of the frame that video_next has announced, straight into @data. */
bool video_read(struct video *video, void *data, size_t bytes, char why[VIDEO_TEXT]);

/* Ends ffmpeg, whatever it is doing. */
void video_close(struct video *video);

#endif

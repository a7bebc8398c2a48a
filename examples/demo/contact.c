/* SPDX-License-Identifier: MIT */
/*
 * demo-contact: a contact sheet, thumbnails of frames spread over the whole video, as contact.png.
 * The producer does not wait for it: if it is too slow, it loses frames.
 *
 * The length of the video is not known before its end. So every frame gets a thumbnail until the
 * sheet is full. Then every second thumbnail is removed, and from then on only every second frame
 * gets one; and so on.
 */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer.h"

#define THUMB_WIDTH	160
#define THUMB_MAX_HEIGHT 320
#define SHEET_COLUMNS	8
#define SHEET_MAX	64		/* thumbnails; even */
#define GAP		4		/* pixels between thumbnails and around them */

static uint8_t *thumb[SHEET_MAX];	/* RGB */
static int thumbs;
static int thumb_width, thumb_height;
static uint64_t stride = 1;		/* frames from one thumbnail to the next */
static uint64_t due;			/* the next frame that gets one */
static bool no_memory;

static void thumb_measure(const struct frame *frame)
{
	thumb_width = frame->width < THUMB_WIDTH ? frame->width : THUMB_WIDTH;
	thumb_height = (int)((int64_t)frame->height * thumb_width / frame->width);
	if (thumb_height < 1)
		thumb_height = 1;
	if (thumb_height > THUMB_MAX_HEIGHT)
		thumb_height = THUMB_MAX_HEIGHT;
}

/* The mean of one plane over the part of it that thumbnail pixel (x, y) covers. */
static int plane_mean(const uint8_t *plane, int width, int height, int x, int y)
{
	int left = (int)((int64_t)x * width / thumb_width);
	int right = (int)((int64_t)(x + 1) * width / thumb_width);
	int top = (int)((int64_t)y * height / thumb_height);
	int bottom = (int)((int64_t)(y + 1) * height / thumb_height);
	uint64_t sum = 0;
	int row, column;

	right += right == left;
	bottom += bottom == top;
	for (row = top; row < bottom; row++)
		for (column = left; column < right; column++)
			sum += plane[(size_t)row * (size_t)width + (size_t)column];
	return (int)(sum / ((uint64_t)(right - left) * (uint64_t)(bottom - top)));
}

static uint8_t clamp(int value)
{
	return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value;
}

/* BT.601, video range. */
static void to_rgb(uint8_t *rgb, int luma, int cb, int cr)
{
	int y = 298 * (luma - 16) + 128;

	rgb[0] = clamp((y + 409 * (cr - 128)) >> 8);
	rgb[1] = clamp((y - 100 * (cb - 128) - 208 * (cr - 128)) >> 8);
	rgb[2] = clamp((y + 516 * (cb - 128)) >> 8);
}

static uint8_t *thumb_make(const struct frame *frame)
{
	uint8_t *rgb = malloc((size_t)thumb_width * (size_t)thumb_height * 3);
	int half_width = (frame->width + 1) / 2, half_height = (frame->height + 1) / 2;
	int x, y;

	if (!rgb)
		return NULL;
	for (y = 0; y < thumb_height; y++)
		for (x = 0; x < thumb_width; x++)
			to_rgb(rgb + ((size_t)y * (size_t)thumb_width + (size_t)x) * 3,
			       plane_mean(frame->luma, frame->width, frame->height, x, y),
			       plane_mean(frame->cb, half_width, half_height, x, y),
			       plane_mean(frame->cr, half_width, half_height, x, y));
	return rgb;
}

static void sheet_halve(void)
{
	int i;

	for (i = 0; i < SHEET_MAX; i += 2) {
		thumb[i / 2] = thumb[i];
		free(thumb[i + 1]);
	}
	thumbs = SHEET_MAX / 2;
	stride *= 2;
}

static void contact_work(const struct frame *frame, const struct frame *previous)
{
	uint64_t number = xmem_metadata_ptr(frame->buffer)->id;

	if (!thumb_width) {
		thumb_measure(frame);
		due = number;
	}
	if (number < due)
		return;
	if (thumbs == SHEET_MAX)
		sheet_halve();
	thumb[thumbs] = thumb_make(frame);
	if (!thumb[thumbs]) {
		no_memory = true;
		return;
	}
	thumbs++;
	due = number + stride;
}

/* All thumbnails into the RGB picture @sheet of @width pixels. */
static void sheet_draw(uint8_t *sheet, int width)
{
	int i, row;

	for (i = 0; i < thumbs; i++) {
		int left = GAP + i % SHEET_COLUMNS * (thumb_width + GAP);
		int top = GAP + i / SHEET_COLUMNS * (thumb_height + GAP);

		for (row = 0; row < thumb_height; row++)
			memcpy(sheet + ((size_t)(top + row) * (size_t)width + (size_t)left) * 3,
			       thumb[i] + (size_t)row * (size_t)thumb_width * 3,
			       (size_t)thumb_width * 3);
	}
}

static bool sheet_write(const char *path, char *text, size_t bytes)
{
	int columns = thumbs < SHEET_COLUMNS ? thumbs : SHEET_COLUMNS;
	int rows = (thumbs + SHEET_COLUMNS - 1) / SHEET_COLUMNS;
	png_image image = {
		.version = PNG_IMAGE_VERSION,
		.width = (png_uint_32)(GAP + columns * (thumb_width + GAP)),
		.height = (png_uint_32)(GAP + rows * (thumb_height + GAP)),
		.format = PNG_FORMAT_RGB,
	};
	uint8_t *sheet = malloc(PNG_IMAGE_SIZE(image));
	bool good;

	if (!sheet) {
		snprintf(text, bytes, "no memory for the contact sheet");
		return false;
	}
	memset(sheet, 32, PNG_IMAGE_SIZE(image));
	sheet_draw(sheet, (int)image.width);
	good = png_image_write_to_file(&image, path, 0, sheet, 0, NULL);
	if (!good)
		snprintf(text, bytes, "cannot write %s: %s", path, image.message);
	free(sheet);
	return good;
}

/*
 * The file is written under another name first, so contact.png is always whole. The name is this
 * process's own, because a predecessor that is being killed may still write its file.
 */
static bool contact_finish(const char *folder, char *text, size_t bytes)
{
	char part[4096], whole[4096];

	if (!thumbs || no_memory) {
		snprintf(text, bytes,
			 no_memory ? "no memory for a thumbnail" : "no frame was received");
		return false;
	}
	if (snprintf(part, sizeof(part), "%s/.contact.%d.png", folder,
		     (int)getpid()) >= (int)sizeof(part) ||
	    snprintf(whole, sizeof(whole), "%s/contact.png", folder) >= (int)sizeof(whole)) {
		snprintf(text, bytes, "the folder's name is too long");
		return false;
	}
	if (!sheet_write(part, text, bytes) || rename(part, whole)) {
		if (!*text)
			snprintf(text, bytes, "cannot write %s: %m", whole);
		unlink(part);
		return false;
	}
	snprintf(text, bytes, "contact.png: %d thumbnails", thumbs);
	return true;
}

int main(int argc, char **argv)
{
	static const struct consumer contact = {
		.label = "contact",
		.work = contact_work,
		.finish = contact_finish,
	};

	return consumer_main(&contact, argc, argv);
}

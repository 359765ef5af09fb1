const HAS_OFFSET = /([zZ]|[+-]\d\d:?\d\d)$/;

/**
 * Return a time in UTC, from text that may be local time without an offset.
 *
 * n8n's date picker returns local time in the workflow's time zone without an offset; the API would read it as UTC.
 */
export function toUtc(zone: string, text: string): string {
	if (HAS_OFFSET.test(text)) return text;
	const asUtc = Date.parse(`${text.replace(' ', 'T')}Z`);
	if (Number.isNaN(asUtc)) return text;
	// The first offset may be from the other side of a daylight saving change; the second one is correct.
	const guess = asUtc - offsetAt(asUtc, zone);
	return new Date(asUtc - offsetAt(guess, zone)).toISOString();
}

function offsetAt(time: number, zone: string): number {
	const format = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
	return Date.parse(`${format.format(time).replace(' ', 'T')}Z`) - Math.floor(time / 1000) * 1000;
}

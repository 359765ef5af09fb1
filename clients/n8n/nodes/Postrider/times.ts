const HAS_OFFSET = /([zZ]|[+-]\d\d:?\d\d)$/;

/**
 * Return a moment in UTC, of a text that may be a wall clock's time.
 *
 * n8n's date picker gives a time without offset and means it in the workflow's time zone; the API would read it as UTC.
 */
export function momentIn(zone: string, text: string): string {
	if (HAS_OFFSET.test(text)) return text;
	const asUtc = Date.parse(`${text.replace(' ', 'T')}Z`);
	if (Number.isNaN(asUtc)) return text;
	// The offset at the guess may be of the other side of a change of the clocks, the second one is not.
	const guess = asUtc - offsetAt(asUtc, zone);
	return new Date(asUtc - offsetAt(guess, zone)).toISOString();
}

function offsetAt(moment: number, zone: string): number {
	const format = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
	return Date.parse(`${format.format(moment).replace(' ', 'T')}Z`) - Math.floor(moment / 1000) * 1000;
}

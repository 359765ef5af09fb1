import { createHmac, timingSafeEqual } from 'node:crypto';

/** Maximum difference between a delivery's timestamp and this machine's clock. */
const TOLERANCE_SECONDS = 300;

export interface Delivery {
	id: unknown;
	timestamp: unknown;
	signatures: unknown;
	body: Buffer;
}

/** Return whether a delivery has a valid signature and a recent timestamp (Standard Webhooks). */
export function isSigned({ id, timestamp, signatures, body }: Delivery, secret: string): boolean {
	if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return false;
	if (!/^\d{1,12}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
	const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
	const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
	const expected = Buffer.from(`v1,${hmac.digest('base64')}`);
	return signatures.split(' ').some((one) => isEqual(Buffer.from(one), expected));
}

function isEqual(given: Buffer, expected: Buffer): boolean {
	return given.length === expected.length && timingSafeEqual(given, expected);
}

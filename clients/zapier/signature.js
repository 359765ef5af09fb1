const { createHmac, timingSafeEqual } = require('node:crypto');

/**
 * Return whether a request was signed with this secret (Standard Webhooks).
 *
 * The timestamp is not checked: Zapier may delay a request for hours before it runs the Zap.
 */
const isSigned = ({ headers, content }, secret) => {
  const named = plainNames(headers ?? {});
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const hmac = createHmac('sha256', key).update(`${named['webhook-id']}.${named['webhook-timestamp']}.${content}`);
  const expected = Buffer.from(`v1,${hmac.digest('base64')}`);
  return String(named['webhook-signature']).split(' ').some((one) => isEqual(Buffer.from(one), expected));
};

// Zapier prefixes header names, as in Http-Webhook-Id.
const plainNames = (headers) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase().replace(/^http-/, ''), value]));

const isEqual = (given, expected) => given.length === expected.length && timingSafeEqual(given, expected);

module.exports = { isSigned };

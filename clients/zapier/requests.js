/** Return the URL of a path with its segments escaped. */
const addressOf = (bundle, path) => `${baseOf(bundle)}/v1/${path.map(segment).join('/')}`;

const baseOf = (bundle) => bundle.authData.base_url.trim().replace(/\/+$/, '');

// An empty id would address the whole collection, and dots a parent path.
const segment = (part) => {
  if (typeof part !== 'string' || /^\.*$/.test(part.trim())) throw new Error('The ID is empty.');
  return encodeURIComponent(part.trim());
};

const call = async (z, bundle, method, path, { query = {}, body, key } = {}) => {
  const response = await z.request({
    method,
    url: addressOf(bundle, path),
    params: query,
    body,
    headers: key ? { 'Idempotency-Key': key } : {},
    // Redirects are errors: following one would turn a POST into a GET.
    redirect: 'manual',
  });
  return response.data;
};

const get = (z, bundle, path, query) => call(z, bundle, 'GET', path, { query });
const post = (z, bundle, path, body, key) => call(z, bundle, 'POST', path, { body, key });
const remove = (z, bundle, path) => call(z, bundle, 'DELETE', path);

/** Send the key only to the service: files are fetched from other hosts with the same client. */
const authorize = (request, z, bundle) => {
  if (!bundle.authData?.base_url || !request.url.startsWith(`${baseOf(bundle)}/v1/`)) return request;
  return { ...request, headers: { ...request.headers, Authorization: `Bearer ${bundle.authData.api_key.trim()}` } };
};

/** Throw an error with a message for the Zap's history. Zapier retries after a ThrottledError. */
const explain = (response, z) => {
  if (response.status < 300) return response;
  const problem = problemOf(response);
  if (problem.code === 'rate_limit_exceeded') {
    throw new z.errors.ThrottledError(problem.detail, Number(response.getHeader('retry-after')) || 1);
  }
  const fields = (problem.errors ?? []).map(({ field, detail }) => `${field}: ${detail}`);
  const detail = problem.detail ?? `The service responded with status ${response.status}. Check the base URL.`;
  const message = fields.join('\n') || detail;
  throw new z.errors.Error(message, response.status === 401 ? 'AuthenticationError' : problem.code, response.status);
};

const problemOf = (response) => {
  try {
    return JSON.parse(response.content) ?? {};
  } catch {
    return {};
  }
};

module.exports = { get, post, remove, authorize, explain };

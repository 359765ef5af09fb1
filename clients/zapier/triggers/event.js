const { get } = require('../requests');
const { streamField, withoutEmpty } = require('../email_fields');
const { isDelivery, performUnsubscribe, subscribe } = require('../webhooks');

const EVENT_TYPES = ['sent', 'delivered', 'bounced', 'failed', 'opened', 'clicked', 'unsubscribed', 'complained', 'deferred', 'replied'];
const SAMPLE_EMAILS = 10;

const performSubscribe = (z, bundle) => {
  const { events, streams } = bundle.inputData;
  return subscribe(z, bundle, { events, ...withoutEmpty({ streams }) });
};

const perform = (z, bundle) => (isDelivery(z, bundle) ? [bundle.cleanedRequest] : []);

/** Return events of the newest emails as samples for the Zap editor. */
const performList = async (z, bundle) => {
  const { data: emails } = await get(z, bundle, ['emails'], { limit: SAMPLE_EMAILS });
  const found = await Promise.all(emails.map((email) => eventsOf(z, bundle, email)));
  return found.flat();
};

const eventsOf = async (z, bundle, { id, to, from, subject, status }) => {
  const { data } = await get(z, bundle, ['emails', id, 'events']);
  const wanted = data.filter(({ eventType }) => bundle.inputData.events.includes(eventType));
  return wanted.map((event) => ({
    id: event.id,
    type: `email.${event.eventType}`,
    event: event.eventType,
    createdAt: event.createdAt,
    data: { to, from, subject, status, ...event.payload },
  }));
};

module.exports = {
  key: 'event',
  noun: 'Email Event',
  display: {
    label: 'Email Event',
    description: 'Triggers when an email is sent, delivered, bounced, opened, clicked and so on.',
  },
  operation: {
    type: 'hook',
    performSubscribe,
    performUnsubscribe,
    perform,
    performList,
    inputFields: [
      { key: 'events', label: 'Events', type: 'string', list: true, required: true, choices: EVENT_TYPES },
      { ...streamField, key: 'streams', label: 'Streams', list: true, helpText: 'Only emails of these streams; all if empty.' },
    ],
    outputFields: [
      { key: 'id', label: 'Event ID' },
      { key: 'event', label: 'Event' },
      { key: 'createdAt', label: 'Created At', type: 'datetime' },
      { key: 'data__emailId', label: 'Email ID' },
      { key: 'data__to', label: 'Recipient' },
      { key: 'data__subject', label: 'Subject' },
    ],
    sample: {
      id: 'evt_0Uf7m2kQ9VxHc3NwZrTb4L',
      type: 'email.delivered',
      event: 'delivered',
      createdAt: '2026-11-20T08:30:02.118Z',
      data: {
        emailId: '0Uf7m2kQ9VxHc3NwZrTb4L',
        to: 'ada@example.com',
        from: 'hello@example.com',
        subject: 'Hello',
        status: 'delivered',
      },
    },
  },
};

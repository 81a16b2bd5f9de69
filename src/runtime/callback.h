/* Host callbacks: what streams must tell them. */
#ifndef RUNTIME_CALLBACK_H
#define RUNTIME_CALLBACK_H

struct stream;

/* The stream was destroyed: no thread is subscribed to it any more. */
void callback_forget_stream(const struct stream *stream);

#endif
